package testbed

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/fga"
)

// OpenFGAServer is an OpenFGA server on disk that can go away and come back.
type OpenFGAServer struct {
	Traffic
	t      testing.TB
	cfg    devserver.OpenFGAConfig
	server *devserver.OpenFGA
}

// OpenFGA is a server of the test's own, which starts when it is first asked for: not every test of a [Bed] needs one.
func OpenFGA(t testing.TB) *OpenFGAServer {
	t.Helper()
	o := &OpenFGAServer{t: t, cfg: devserver.OpenFGAConfig{File: filepath.Join(t.TempDir(), "openfga.db"), UnsafeNoFsync: true}}
	t.Cleanup(o.Stop)
	return o
}

// address is where the server is, or will be again.
func (o *OpenFGAServer) address() string {
	o.t.Helper()
	if o.cfg.GRPCPort == 0 {
		o.Start(o.t)
	}
	return devserver.Address(o.cfg.GRPCPort)
}

// Start starts the server again, with the same stores on the same port.
func (o *OpenFGAServer) Start(t testing.TB) {
	t.Helper()
	server, err := devserver.StartOpenFGA(o.cfg)
	if err != nil {
		t.Fatal(err)
	}
	o.server, o.cfg.GRPCPort = server, server.Port()
}

// Stop ends the server; a stopped one stays stopped.
func (o *OpenFGAServer) Stop() {
	if o.server != nil {
		o.server.Stop()
		o.server = nil
	}
}

// Backup copies the database, while the server is away for a moment. What it returns puts the copy in the place of what is there by
// then, in the same way.
func (o *OpenFGAServer) Backup(t testing.TB) (restore func()) {
	t.Helper()
	kept := filepath.Join(t.TempDir(), "backup")
	o.copied(t, filepath.Dir(o.cfg.File), kept)
	return func() {
		t.Helper()
		o.copied(t, kept, filepath.Dir(o.cfg.File))
	}
}

// copied makes a directory what another one is, while the server is away.
func (o *OpenFGAServer) copied(t testing.TB, from, to string) {
	t.Helper()
	o.Stop()
	if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
		t.Fatal(err)
	}
	o.Start(t)
}

// Config leads a client to this server and through its [Traffic]. It is good over restarts.
func (o *OpenFGAServer) Config() fga.Config {
	return fga.Config{
		Target:      o.address(),
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(o.unary)},
	}
}

// Client is a client of the test's own, outside of [Traffic]: what a test does is not counted.
func (o *OpenFGAServer) Client(t testing.TB) *fga.Client {
	t.Helper()
	client, err := fga.Dial(fga.Config{Target: o.address()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
