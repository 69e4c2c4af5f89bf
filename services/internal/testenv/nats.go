package testenv

import (
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/natsauth"
)

// password is the password of all users.
const password = "test"

// reconnectWait is short, so that tests with restarts take less time.
const reconnectWait = 20 * time.Millisecond

// NATSServer is a NATS server with JetStream on disk that can stop and restart.
type NATSServer struct {
	t   testing.TB
	cfg devserver.NATSConfig
	// server is nil while the server is stopped.
	server *devserver.ServerProcess
}

// StartNATS starts a server for one test.
func StartNATS(t testing.TB) *NATSServer {
	t.Helper()
	n := &NATSServer{t: t, cfg: devserver.NATSConfig{Dir: t.TempDir(), Password: password}}
	n.Start(t)
	t.Cleanup(func() {
		if t.Failed() && n.server != nil {
			t.Logf("NATS logged, at the end:\n%s", n.server.LogTail())
		}
		n.Stop()
	})
	return n
}

// DataFiles returns the files in the server's directory.
func (n *NATSServer) DataFiles() fs.FS { return os.DirFS(n.cfg.Dir) }

// Backup copies the directory of a stopped server. The returned function replaces the directory by the copy. The
// server must also be stopped when it is called.
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

// URL returns the address for the test's own client, which has all rights. A restart keeps the address.
func (n *NATSServer) URL() string { return n.URLOf(natsauth.Admin) }

// URLOf returns the address for a service, with its shipped rights.
func (n *NATSServer) URLOf(service string) string { return n.cfg.URL(service) }

// Start starts the server. After a stop, it keeps the streams and the port. It waits while another program uses the
// port.
func (n *NATSServer) Start(t testing.TB) {
	t.Helper()
	server, err := devserver.StartNATS(t.Context(), n.cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.server, n.cfg.Port = server, server.Port()
}

// Stop stops the server unless it is stopped.
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

// Connect returns a connection that survives restarts of the server. It is closed when the test ends.
func (n *NATSServer) Connect(t testing.TB) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(n.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// JetStream returns a JetStream client on a new connection.
func (n *NATSServer) JetStream(t testing.TB) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(n.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	return js
}
