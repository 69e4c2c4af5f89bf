package fga_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
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
	"github.com/entail-dev/entail/services/internal/testenv"
)

// replaceFileContent changes the content and the modification time of a file.
func replaceFileContent(t *testing.T, file, content string) {
	t.Helper()
	before := time.Time{}
	if info, err := os.Stat(file); err == nil {
		before = info.ModTime()
	}
	later := before.Add(time.Second)
	if err := errors.Join(os.WriteFile(file, []byte(content), 0o600), os.Chtimes(file, later, later)); err != nil {
		t.Fatal(err)
	}
}

func TestTokenFileIsReloaded(t *testing.T) {
	everyAPI(t, func(t *testing.T, over api) {
		var accepted atomic.Value
		accepted.Store("Bearer one")
		guard := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			if got := md.Get("authorization"); len(got) != 1 || got[0] != accepted.Load() {
				return nil, status.Error(codes.Unauthenticated, "unauthenticated")
			}
			return next(ctx, req)
		}
		file := filepath.Join(t.TempDir(), "token")
		replaceFileContent(t, file, "one")
		client := over.dial(t, embedded.OpenFGAConfig{ServerOptions: []grpc.ServerOption{grpc.ChainUnaryInterceptor(guard)}}, fga.Config{PresharedKeyFile: file})
		if _, err := client.CreateStore(t.Context(), "test"); err != nil {
			t.Fatal(err)
		}
		accepted.Store("Bearer two")
		if _, err := client.CreateStore(t.Context(), "test"); !fault.IsUnavailable(err) {
			t.Errorf("with the old token: %v", err)
		}
		replaceFileContent(t, file, "two\n")
		if _, err := client.CreateStore(t.Context(), "test"); err != nil {
			t.Errorf("with the new token: %v", err)
		}
		replaceFileContent(t, file, "")
		if _, err := client.CreateStore(t.Context(), "test"); err != nil {
			t.Errorf("in the middle of a change: %v", err)
		}
	})
}

func TestCAFileIsReloaded(t *testing.T) {
	certificate, authority := selfSigned(t)
	_, other := selfSigned(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	replaceFileContent(t, file, string(other))
	server := embedded.OpenFGAConfig{ServerOptions: []grpc.ServerOption{grpc.Creds(credentials.NewServerTLSFromCert(&certificate))}}
	client := dial(t, server, fga.Config{CAFile: file})
	if _, err := client.CreateStore(t.Context(), "test"); !fault.IsUnavailable(err) {
		t.Errorf("under another authority: %v", err)
	}
	replaceFileContent(t, file, string(authority))
	testenv.Eventually(t, time.Minute, func() error {
		_, err := client.CreateStore(t.Context(), "test")
		return err
	})
}

func TestHealthErrFollowsServerAnswers(t *testing.T) {
	var away atomic.Bool
	fail := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if away.Load() {
			return nil, status.Error(codes.Unavailable, "no database")
		}
		return next(ctx, req)
	}
	client := dial(t, embedded.OpenFGAConfig{ServerOptions: []grpc.ServerOption{grpc.ChainUnaryInterceptor(fail)}}, fga.Config{})
	if err := client.HealthErr(); err == nil || !strings.Contains(err.Error(), "has not answered yet") {
		t.Errorf("before the first answer: %v", err)
	}
	if _, _, err := client.GetStore(t.Context(), unknown); fault.IsUnavailable(err) || client.HealthErr() != nil {
		t.Errorf("absent store: got error %v, health %v; want a healthy client", err, client.HealthErr())
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- client.RunProbes(ctx) }()
	away.Store(true)
	testenv.Eventually(t, time.Minute, func() error {
		if err := client.HealthErr(); err == nil || !strings.Contains(err.Error(), "no database") {
			return errors.Join(errors.New("the client does not know"), err)
		}
		return nil
	})
	away.Store(false)
	testenv.Eventually(t, time.Minute, client.HealthErr)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
