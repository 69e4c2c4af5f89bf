package service

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/entail-dev/entail/services/internal/topology"
)

func TestServiceIsAliveWhileWaitingForNATS(t *testing.T) {
	port := freePort(t)
	tr := runService(t, fmt.Sprintf("nats://127.0.0.1:%d", port), nothing)
	eventually(t, tr.readyzIs("starting: waiting for NATS"))
	if status, text := tr.get("/healthz"); status != 200 {
		t.Errorf("healthz is %d %s", status, text)
	}
	eventually(t, tr.logHolds(`"msg":"waiting for NATS"`))
	startNATS(t, port, nil)
	tr.mustBecomeReady(t)
	if err := tr.stop(); err != nil {
		t.Error(err)
	}
}

func TestRetryLogsOnceAndThenWarns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var log strings.Builder
		began := time.Now()
		err := retryUntilDone(ctx, slog.New(slog.NewTextHandler(&log, nil)), "waiting", connectBackoff(), func() error {
			if time.Since(began) > 3*startupPeriod {
				return errors.New("unauthorized")
			}
			return errors.New("refused")
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		var got []string
		for line := range strings.Lines(log.String()) {
			_, text, _ := strings.Cut(strings.TrimSpace(line), " level=")
			got = append(got, text)
		}
		if want := []string{"INFO msg=waiting error=refused", "WARN msg=waiting error=refused", "WARN msg=waiting error=unauthorized"}; !slices.Equal(got, want) {
			t.Errorf("got log %q, want %q", got, want)
		}
	})
}

func (tr *runningService) logHolds(text string) func() error {
	return func() error {
		if !strings.Contains(tr.log.String(), text) {
			return fmt.Errorf("log lacks %s: %s", text, tr.log)
		}
		return nil
	}
}

func TestServiceStopsCleanlyWhileWaiting(t *testing.T) {
	tr := runService(t, fmt.Sprintf("nats://127.0.0.1:%d", freePort(t)), nothing)
	eventually(t, tr.logHolds("waiting for NATS"))
	if err := tr.stop(); err != nil {
		t.Fatal(err)
	}
}

func TestServiceRecoversAfterNATSOutage(t *testing.T) {
	port := freePort(t)
	bus := startNATS(t, port, nil)
	tr := runService(t, bus.ClientURL(), nothing)
	tr.mustBecomeReady(t)
	bus.Shutdown()
	bus.WaitForShutdown()
	eventually(t, tr.readyzIs("nats: not connected"))
	startNATS(t, port, nil)
	tr.mustBecomeReady(t)
	bus.Shutdown()
}

func TestServiceStopsDuringNATSOutage(t *testing.T) {
	bus := startNATS(t, -1, nil)
	tr := runService(t, bus.ClientURL(), nothing)
	tr.mustBecomeReady(t)
	bus.Shutdown()
	eventually(t, tr.readyzIs("nats: not connected"))
	if err := tr.stop(); err != nil {
		t.Fatal(err)
	}
}

func TestServiceWaitsForJetStream(t *testing.T) {
	bus := startNATS(t, -1, func(o *natsserver.Options) { o.JetStream = false })
	tr := runService(t, bus.ClientURL(), nothing)
	eventually(t, tr.logHolds(`"msg":"waiting for JetStream"`))
	if err := bus.EnableJetStream(&natsserver.JetStreamConfig{StoreDir: storeDir(t)}); err != nil {
		t.Fatal(err)
	}
	tr.mustBecomeReady(t)
}

// startNATSWithoutStreams is a NATS server without streams, as before the first start of the watcher.
func startNATSWithoutStreams(o *natsserver.Options) { o.StoreDir += "/empty" }

func TestServiceWaitsForStreamsUnlessWatcher(t *testing.T) {
	bus := startNATS(t, -1, startNATSWithoutStreams)
	cfg := Defaults()
	cfg.NATS.URL = bus.ClientURL()
	runServiceAs(t, topology.Watcher, cfg, nothing).mustBecomeReady(t)
	tr := runServiceWith(t, cfg, nothing)
	eventually(t, tr.logHolds("stream ENTAIL_CHANGES is missing, "))
	js := jetStream(t, bus)
	if err := topology.EnsureStreams(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	tr.mustBecomeReady(t)
}

func TestServiceDoesNotChangeStreams(t *testing.T) {
	bus := startNATS(t, -1, nil)
	js := jetStream(t, bus)
	stream, err := js.Stream(t.Context(), topology.Changes)
	if err != nil {
		t.Fatal(err)
	}
	changed := stream.CachedInfo().Config
	changed.MaxMsgs = 1
	if _, err := js.UpdateStream(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	tr := runService(t, bus.ClientURL(), nothing)
	eventually(t, tr.logHolds("stream ENTAIL_CHANGES differs in MaxMsgs"))
	if err := topology.EnsureStreams(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	tr.mustBecomeReady(t)
}

func TestInboxPrefixIsPrivate(t *testing.T) {
	inboxes := make(chan string, 1)
	tr := runService(t, startNATS(t, -1, nil).ClientURL(), func(_ context.Context, rt *Runtime) (App, error) {
		inboxes <- rt.NATS.NewInbox()
		return nothing(t.Context(), rt)
	})
	tr.mustBecomeReady(t)
	if inbox := <-inboxes; !strings.HasPrefix(inbox, "_INBOX_test-sync.") {
		t.Errorf("inbox is %s", inbox)
	}
}

func TestEveryKindOfCredentialsWorks(t *testing.T) {
	seed, public := newNKey(t)
	tests := map[string]struct {
		server func(*natsserver.Options)
		client func(*NATSConfig)
	}{
		"user and password": {
			func(o *natsserver.Options) { o.Username, o.Password = "me", "hunter2" },
			func(n *NATSConfig) { n.User, n.PasswordFile = "me", writeFile(t, "hunter2\n") },
		},
		"token": {
			func(o *natsserver.Options) { o.Authorization = "hunter2" },
			func(n *NATSConfig) { n.TokenFile = writeFile(t, "hunter2\n") },
		},
		"nkey": {
			func(o *natsserver.Options) { o.Nkeys = []*natsserver.NkeyUser{{Nkey: public}} },
			func(n *NATSConfig) { n.NKeyFile = writeFile(t, seed) },
		},
		"in the URL": {
			func(o *natsserver.Options) { o.Username, o.Password = "me", "hunter2" },
			func(n *NATSConfig) { n.URL = strings.Replace(n.URL, "nats://", "nats://me:hunter2@", 1) },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := Defaults()
			cfg.NATS.URL = startNATS(t, -1, test.server).ClientURL()
			test.client(&cfg.NATS)
			tr := runServiceWith(t, cfg, nothing)
			tr.mustBecomeReady(t)
			if log := tr.log.String(); strings.Contains(log, "hunter2") || strings.Contains(log, seed) {
				t.Errorf("log holds a secret: %s", log)
			}
		})
	}
}

func TestNATSCertificateIsVerified(t *testing.T) {
	certificate, authority := selfSigned(t)
	bus := startNATS(t, -1, func(o *natsserver.Options) {
		o.TLSConfig, o.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}, true
	})
	cfg := Defaults()
	cfg.NATS.URL = bus.ClientURL()
	stranger := runServiceWith(t, cfg, nothing)
	eventually(t, stranger.logHolds("certificate signed by unknown authority"))
	cfg.NATS.CAFile = writeFile(t, string(authority))
	runServiceWith(t, cfg, nothing).mustBecomeReady(t)
}

func selfSigned(t *testing.T) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestPasswordFileIsRereadAtConnect(t *testing.T) {
	file := writeFile(t, "wrong")
	cfg := Defaults()
	cfg.NATS.URL = startNATS(t, -1, func(o *natsserver.Options) { o.Username, o.Password = "me", "hunter2" }).ClientURL()
	cfg.NATS.User, cfg.NATS.PasswordFile = "me", file
	tr := runServiceWith(t, cfg, nothing)
	eventually(t, tr.logHolds("Authorization Violation"))
	if err := os.WriteFile(file, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	tr.mustBecomeReady(t)
}

func TestNKeyFileWithoutSeedIsRefused(t *testing.T) {
	cfg := Defaults()
	cfg.NATS.NKeyFile = writeFile(t, "not a seed")
	if err := runServiceWith(t, cfg, nothing).ended(); err == nil || !strings.Contains(err.Error(), "reading NATS seed of "+cfg.NATS.NKeyFile) {
		t.Fatalf("ended with %v", err)
	}
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func newNKey(t *testing.T) (seed, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	private, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	public, err = pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return string(private), public
}

func TestStopTasksNamesLateTasks(t *testing.T) {
	release := make(chan struct{})
	late := startTasks(t.Context(), func(error) {}, func(context.Context) error {
		<-release
		return errors.New("too late to matter")
	})
	if err := late.stopTasks(time.Millisecond); err == nil || !strings.Contains(err.Error(), "tasks did not finish within 1ms") {
		t.Errorf("got %v", err)
	}
	close(release)
	<-late.done
}
