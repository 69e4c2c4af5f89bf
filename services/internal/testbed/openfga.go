package testbed

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/fga"
)

// OpenFGAServer is an OpenFGA server on disk that can go away and come back.
type OpenFGAServer struct {
	Traffic
	t testing.TB
	// own is nil until the server is needed.
	own *openFGA
}

// OpenFGA returns a server without stores, for this test alone. The server starts when it is first needed: not
// every test of a [Bed] needs one. A later test uses it again, without the stores that this test made.
func OpenFGA(t testing.TB) *OpenFGAServer {
	t.Helper()
	o := &OpenFGAServer{t: t}
	t.Cleanup(o.giveBack)
	return o
}

// giveBack lets later tests use the server.
func (o *OpenFGAServer) giveBack() {
	if o.own == nil {
		return
	}
	if o.t.Failed() {
		o.t.Logf("OpenFGA logged, at the end:\n%s", o.own.log())
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanWithin)
	defer cancel()
	if err := openFGAs.put(ctx, o.own); err != nil {
		o.t.Errorf("cleaning up after the test: %v", err)
	}
}

// address returns where the server is, or will be again.
func (o *OpenFGAServer) address() string {
	o.t.Helper()
	if o.own == nil {
		var err error
		if o.own, err = openFGAs.take(o.t.Context()); err != nil {
			o.t.Fatal(err)
		}
	}
	return devserver.Address(o.own.cfg.Port)
}

// Start starts the server again, with the same stores on the same port.
func (o *OpenFGAServer) Start(t testing.TB) {
	t.Helper()
	o.address()
	if err := o.own.start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Stop ends the server; a stopped one stays stopped.
func (o *OpenFGAServer) Stop() {
	o.t.Helper()
	o.address()
	if err := o.own.stop(); err != nil {
		o.t.Error(err)
	}
}

// Backup copies the database, while the server is away for a moment. The function that it returns puts the copy
// in the place of the database, in the same way.
func (o *OpenFGAServer) Backup(t testing.TB) (restore func()) {
	t.Helper()
	kept := t.TempDir()
	o.address()
	o.copy(t, o.own.dir(), kept)
	return func() {
		t.Helper()
		o.copy(t, kept, o.own.dir())
	}
}

// copy makes a directory equal to another one, while the server is away.
func (o *OpenFGAServer) copy(t testing.TB, from, to string) {
	t.Helper()
	o.Stop()
	if err := replaceDir(to, from); err != nil {
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
