package fga_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/entail-dev/entail/services/internal/devserver/embedded"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
)

func TestClientReconnectsToUnavailableServer(t *testing.T) {
	everyAPI(t, func(t *testing.T, over api) {
		cfg := embedded.OpenFGAConfig{File: filepath.Join(t.TempDir(), "openfga.db"), UnsafeNoFsync: true}
		server := start(t, cfg)
		client := connect(t, fga.Config{Target: over(server)})
		store := storeWithModel(t, client)
		cfg.GRPCPort, cfg.HTTPPort = server.GRPCPort(), portOf(t, server.URL())
		server.Stop()

		for range 3 {
			if err := client.Write(t.Context(), store, "", viewers(1), nil); !fault.IsUnavailable(err) {
				t.Errorf("a server that is down: %v; want unavailable", err)
			}
		}
		start(t, cfg)
		deadline := time.Now().Add(time.Minute)
		for err := client.Write(t.Context(), store, "", viewers(1), nil); err != nil; err = client.Write(t.Context(), store, "", viewers(1), nil) {
			if !fault.IsUnavailable(err) || time.Now().After(deadline) {
				t.Fatalf("a server that is back: %v", err)
			}
		}
		if got := sortedTuples(t, client, store); len(got) != 1 {
			t.Errorf("the store holds %v; want the tuple", got)
		}
	})
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestCallHasDeadline(t *testing.T) {
	everyAPI(t, func(t *testing.T, over api) {
		stuck := func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		client := over.dial(t, embedded.OpenFGAConfig{ServerOptions: []grpc.ServerOption{grpc.ChainUnaryInterceptor(stuck)}}, fga.Config{Timeout: 20 * time.Millisecond})
		_, _, err := client.GetStore(t.Context(), unknown)
		if !fault.IsUnavailable(err) || !strings.Contains(err.Error(), "DeadlineExceeded") {
			t.Errorf("got %v; want unavailable for the deadline", err)
		}
	})
}

func TestTokenIsSentAndRefusalIsUnavailable(t *testing.T) {
	everyAPI(t, func(t *testing.T, over api) {
		const secret = "only-for-this-test"
		guard := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			if got := md.Get("authorization"); len(got) != 1 || got[0] != "Bearer "+secret {
				return nil, status.Error(codes.Unauthenticated, "unauthenticated")
			}
			return next(ctx, req)
		}
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		server := embedded.OpenFGAConfig{ServerOptions: []grpc.ServerOption{grpc.ChainUnaryInterceptor(guard)}}
		for name, tc := range map[string]struct {
			cfg     fga.Config
			refused bool
		}{
			"by value":  {cfg: fga.Config{PresharedKey: secret}},
			"by file":   {cfg: fga.Config{PresharedKeyFile: file}},
			"none":      {refused: true},
			"wrong one": {cfg: fga.Config{PresharedKey: "wrong"}, refused: true},
		} {
			t.Run(name, func(t *testing.T) {
				_, _, err := over.dial(t, server, tc.cfg).GetStore(t.Context(), unknown)
				if tc.refused != (err != nil) || tc.refused && !fault.IsUnavailable(err) {
					t.Errorf("got %v; want refused %v, and then unavailable", err, tc.refused)
				}
			})
		}
	})
}

func TestTLSVerifiesServerCertificate(t *testing.T) {
	certificate, authority := selfSigned(t)
	caFile := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	server := embedded.OpenFGAConfig{ServerOptions: []grpc.ServerOption{grpc.Creds(credentials.NewServerTLSFromCert(&certificate))}}

	trusting := dial(t, server, fga.Config{CAFile: caFile, PresharedKey: "sent over TLS"})
	if _, err := trusting.CreateStore(t.Context(), "secure"); err != nil {
		t.Errorf("with the server's authority: %v", err)
	}
	_, otherAuthority := selfSigned(t)
	if err := os.WriteFile(caFile, otherAuthority, 0o600); err != nil {
		t.Fatal(err)
	}
	doubting := dial(t, server, fga.Config{CAFile: caFile})
	if _, err := doubting.CreateStore(t.Context(), "secure"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with another authority: %v; want a refused certificate", err)
	}
}

func TestCanceledCallIsNotCounted(t *testing.T) {
	everyAPI(t, func(t *testing.T, over api) {
		client := over.dial(t, embedded.OpenFGAConfig{}, fga.Config{})
		why := errors.New("the service drains")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if _, err := client.CreateStore(ctx, "test"); !errors.Is(err, why) || !fault.IsUnavailable(err) {
			t.Errorf("got %v; want %v", err, why)
		}
	})
}

func selfSigned(t *testing.T) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "openfga"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
