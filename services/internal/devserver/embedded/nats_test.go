package embedded

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/natsauth"
)

func startNATS(t *testing.T, cfg NATSConfig) *NATSServer {
	t.Helper()
	n, err := StartNATS(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Stop)
	return n
}

func connect(t *testing.T, n *NATSServer) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(n.URL(natsauth.Admin))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func TestNATSKeepsStreamsAcrossRestart(t *testing.T) {
	cfg := NATSConfig{Dir: t.TempDir()}
	first := startNATS(t, cfg)
	if _, err := connect(t, first).CreateStream(t.Context(), jetstream.StreamConfig{Name: "KEPT", Subjects: []string{"kept"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, first).Publish(t.Context(), "kept", []byte("message")); err != nil {
		t.Fatal(err)
	}
	first.Stop()

	cfg.Port = first.Port()
	stream, err := connect(t, startNATS(t, cfg)).Stream(t.Context(), "KEPT")
	if err != nil {
		t.Fatal(err)
	}
	if message, err := stream.GetMsg(t.Context(), 1); err != nil || string(message.Data) != "message" {
		t.Errorf("got %v, %v; want the message", message, err)
	}
}

func TestNATSHasDefaultMaxPayload(t *testing.T) {
	js := connect(t, startNATS(t, NATSConfig{Dir: t.TempDir()}))
	if got := js.Conn().MaxPayload(); got != 1<<20 {
		t.Errorf("the limit is %d bytes; want %d", got, 1<<20)
	}
}

func TestNATSListensOnLoopbackOnly(t *testing.T) {
	n := startNATS(t, NATSConfig{Dir: t.TempDir()})
	if addr, ok := n.server.Addr().(*net.TCPAddr); !ok || !addr.IP.IsLoopback() {
		t.Errorf("it listens on %v", n.server.Addr())
	}
}

func TestStartNamesPortInUse(t *testing.T) {
	taken, err := devserver.ListenLoopback("test", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := devserver.PortOf(taken.Addr())
	for name, start := range map[string]func() error{
		"NATS":     func() error { _, err := StartNATS(NATSConfig{Dir: t.TempDir(), Port: port}); return err },
		"OpenFGA":  func() error { _, err := StartOpenFGA(OpenFGAConfig{GRPCPort: port}); return err },
		"HTTP API": func() error { _, err := StartOpenFGA(OpenFGAConfig{HTTP: true, HTTPPort: port}); return err },
	} {
		err := start()
		if err == nil || !strings.Contains(err.Error(), "is taken by another program") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v; want the port and what to do", name, err)
		}
	}
}

func TestNATSReportsUnwritableStorage(t *testing.T) {
	if _, err := StartNATS(NATSConfig{Dir: "/dev/null/streams"}); err == nil || !strings.Contains(err.Error(), "/dev/null") {
		t.Errorf("got %v; want the directory", err)
	}
}

func TestNATSLogsWarningsThroughSlog(t *testing.T) {
	var seen recorder
	n := startNATS(t, NATSConfig{Dir: t.TempDir(), Log: slog.New(&seen)})
	n.Stop()
	levels := seen.levels()
	if len(levels) == 0 {
		t.Error("nothing was logged")
	}
	for _, level := range levels {
		if level > slog.LevelDebug {
			t.Errorf("logged at %v; want debug", level)
		}
	}
}

// recorder is a slog.Handler that keeps its records.
type recorder struct {
	mu   sync.Mutex
	seen []slog.Record
}

func (*recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r *recorder) Handle(_ context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, record)
	return nil
}
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler { return r }
func (r *recorder) WithGroup(string) slog.Handler      { return r }

func (r *recorder) levels() []slog.Level {
	r.mu.Lock()
	defer r.mu.Unlock()
	levels := make([]slog.Level, len(r.seen))
	for i, record := range r.seen {
		levels[i] = record.Level
	}
	return levels
}
