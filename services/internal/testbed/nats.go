package testbed

import (
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/permission"
)

// password is that of every user.
const password = "test"

// reconnectWait keeps tests of restarts short.
const reconnectWait = 20 * time.Millisecond

// NATSServer is a NATS server with JetStream on disk that can go away and come back.
type NATSServer struct {
	t   testing.TB
	cfg devserver.NATSConfig
	// server is nil while it is stopped.
	server *devserver.Server
}

// NATS starts a server of the test's own.
func NATS(t testing.TB) *NATSServer {
	t.Helper()
	n := &NATSServer{t: t, cfg: devserver.NATSConfig{Dir: t.TempDir(), Password: password}}
	n.Start(t)
	t.Cleanup(func() {
		if t.Failed() && n.server != nil {
			t.Logf("NATS logged, at the end:\n%s", n.server.Log())
		}
		n.Stop()
	})
	return n
}

// Files are those that the server keeps.
func (n *NATSServer) Files() fs.FS { return os.DirFS(n.cfg.Dir) }

// Backup copies what the server keeps, which must be stopped. The function that it returns puts the copy in the
// place of what the stopped server keeps then.
func (n *NATSServer) Backup(t testing.TB) (restore func()) {
	t.Helper()
	kept := t.TempDir()
	if err := replaceDir(kept, n.cfg.Dir); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := replaceDir(n.cfg.Dir, kept); err != nil {
			t.Fatal(err)
		}
	}
}

// URL is that of the test's own hands, who may do everything. It is the same over restarts.
func (n *NATSServer) URL() string { return n.URLOf(permission.Admin) }

// URLOf is that of a service, which may do what it may in a cluster.
func (n *NATSServer) URLOf(service string) string { return n.cfg.URL(service) }

// Start starts the server again, with the same streams on the same port, once that is free: while
// the server was away, it may serve somebody's outgoing connection.
func (n *NATSServer) Start(t testing.TB) {
	t.Helper()
	server, err := devserver.StartNATS(t.Context(), n.cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.server, n.cfg.Port = server, server.Port()
}

// Stop ends the server; a stopped one stays stopped.
func (n *NATSServer) Stop() {
	n.t.Helper()
	if n.server == nil {
		return
	}
	if err := n.server.Stop(); err != nil {
		n.t.Error(err)
	}
	n.server = nil
}

// Connect makes a connection that outlives restarts of the server and ends with the test.
func (n *NATSServer) Connect(t testing.TB) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(n.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// JetStream is that of a connection of its own.
func (n *NATSServer) JetStream(t testing.TB) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(n.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	return js
}
