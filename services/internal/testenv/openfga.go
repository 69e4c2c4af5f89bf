package testenv

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/fga"
)

// OpenFGAServer is an OpenFGA server on disk that can stop and restart.
type OpenFGAServer struct {
	Traffic
	t testing.TB
	// process is nil until the first use.
	process *openFGAProcess
}

// LazyOpenFGA returns a server without stores for one test. The server starts at its first use, because not every test
// of an [Env] needs it. When the test ends, its stores are deleted, and a later test reuses the server.
func LazyOpenFGA(t testing.TB) *OpenFGAServer {
	t.Helper()
	o := &OpenFGAServer{t: t}
	t.Cleanup(o.returnToPool)
	return o
}

// returnToPool returns the server to the pool.
func (o *OpenFGAServer) returnToPool() {
	if o.process == nil {
		return
	}
	if o.t.Failed() {
		o.t.Logf("OpenFGA logged, at the end:\n%s", o.process.serverLog())
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	if err := openFGAs.putServer(ctx, o.process); err != nil {
		o.t.Errorf("cleaning up after the test: %v", err)
	}
}

// ensureStartedAddress returns the address of the server, and starts the server at the first call.
func (o *OpenFGAServer) ensureStartedAddress() string {
	o.t.Helper()
	if o.process == nil {
		var err error
		if o.process, err = openFGAs.takeServer(o.t.Context()); err != nil {
			o.t.Fatal(err)
		}
	}
	return devserver.LoopbackAddress(o.process.cfg.Port)
}

// Start starts the server again, with the same stores and the same port.
func (o *OpenFGAServer) Start(t testing.TB) {
	t.Helper()
	o.ensureStartedAddress()
	if err := o.process.startServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Stop stops the server unless it is stopped.
func (o *OpenFGAServer) Stop() {
	o.t.Helper()
	o.ensureStartedAddress()
	if err := o.process.stopServer(); err != nil {
		o.t.Error(err)
	}
}

// Backup stops the server, copies its database and starts it again. The returned function stops the server, replaces
// its database by the copy, and starts it again.
func (o *OpenFGAServer) Backup(t testing.TB) (restore func()) {
	t.Helper()
	kept := t.TempDir()
	o.ensureStartedAddress()
	o.copyStorage(t, o.process.storageDir(), kept)
	return func() {
		t.Helper()
		o.copyStorage(t, kept, o.process.storageDir())
	}
}

// copyStorage copies a directory while the server is stopped.
func (o *OpenFGAServer) copyStorage(t testing.TB, from, to string) {
	t.Helper()
	o.Stop()
	if err := replaceDir(to, from); err != nil {
		t.Fatal(err)
	}
	o.Start(t)
}

// Config returns a client configuration for this server. Its calls go through the server's [Traffic]. It remains valid
// over restarts.
func (o *OpenFGAServer) Config() fga.Config {
	return fga.Config{
		Target:      o.ensureStartedAddress(),
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(o.interceptUnary)},
	}
}

// Client returns a client for the test itself. Its calls bypass [Traffic], so they are not counted.
func (o *OpenFGAServer) Client(t testing.TB) *fga.Client {
	t.Helper()
	client, err := fga.Dial(fga.Config{Target: o.ensureStartedAddress()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
