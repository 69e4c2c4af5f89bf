package fga_test

import (
	"path/filepath"
	"testing"

	"github.com/entail-dev/entail/services/internal/devserver/embedded"
	"github.com/entail-dev/entail/services/internal/fga"
)

// everyDatastore runs a test against real servers, one for each datastore and API.
func everyDatastore(t *testing.T, test func(t *testing.T, client *fga.Client)) {
	t.Helper()
	for _, datastore := range []string{"memory", "sqlite"} {
		t.Run(datastore, func(t *testing.T) {
			everyAPI(t, func(t *testing.T, over api) {
				file := ""
				if datastore == "sqlite" {
					file = filepath.Join(t.TempDir(), "openfga.db")
				}
				test(t, over.dial(t, embedded.OpenFGAConfig{File: file, UnsafeNoFsync: true}, fga.Config{}))
			})
		})
	}
}

// api returns the address of one of the two APIs of a server.
type api func(*embedded.OpenFGAServer) string

func everyAPI(t *testing.T, test func(t *testing.T, over api)) {
	t.Helper()
	for name, over := range map[string]api{"gRPC": (*embedded.OpenFGAServer).GRPCTarget, "HTTP": (*embedded.OpenFGAServer).URL} {
		t.Run(name, func(t *testing.T) { test(t, over) })
	}
}

// dial starts a server and returns a client of its gRPC API.
func dial(t *testing.T, server embedded.OpenFGAConfig, cfg fga.Config) *fga.Client {
	t.Helper()
	return api((*embedded.OpenFGAServer).GRPCTarget).dial(t, server, cfg)
}

func (over api) dial(t *testing.T, server embedded.OpenFGAConfig, cfg fga.Config) *fga.Client {
	t.Helper()
	cfg.Target = over(start(t, server))
	return connect(t, cfg)
}

func start(t *testing.T, cfg embedded.OpenFGAConfig) *embedded.OpenFGAServer {
	t.Helper()
	cfg.HTTP = true
	running, err := embedded.StartOpenFGA(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running.Stop)
	return running
}

func connect(t *testing.T, cfg fga.Config) *fga.Client {
	t.Helper()
	client, err := fga.Dial(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
