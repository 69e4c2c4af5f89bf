package testenv

import (
	"context"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const cleanTimeout = 2 * time.Minute

// KubeServer is the Kubernetes API server of this test binary, with Entail's CRDs and admission policies.
type KubeServer struct {
	Traffic
	cluster *sharedKube
}

// StartKube returns the API server and starts it if necessary. All tests of the binary share the server, so they must
// not run in parallel. When the test ends, all objects of Entail and all leases are removed, even if they have
// finalizers.
func StartKube(t testing.TB) *KubeServer {
	t.Helper()
	c, err := shared.ensureStarted(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k := &KubeServer{cluster: c}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
		defer cancel()
		_, err := shared.ensureStarted(ctx)
		if err == nil {
			err = removeLeftovers(ctx, k.DynamicClient(t))
		}
		if err != nil {
			t.Errorf("cleaning up after the test: %v", err)
		}
	})
	return k
}

// ServiceConfig returns a client configuration with the shipped rights of a service. Its calls go through this
// server's [Traffic]. It remains valid over restarts.
func (k *KubeServer) ServiceConfig(t testing.TB, service string) *rest.Config {
	t.Helper()
	cfg, err := k.cluster.server.UserConfig(service)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return trafficTransport{traffic: &k.Traffic, next: next}
	})
	return cfg
}

// ServiceKubeconfig returns a kubeconfig file with the shipped rights of a service, for another process.
func (k *KubeServer) ServiceKubeconfig(service string) string {
	return k.cluster.server.UserKubeconfigPath(service)
}

// AdminConfig returns the client configuration of an administrator. Its calls bypass [Traffic].
func (k *KubeServer) AdminConfig() *rest.Config {
	cfg := rest.CopyConfig(k.cluster.config)
	cfg.QPS = -1
	return cfg
}

// DynamicClient returns a client of an administrator. Its calls bypass [Traffic].
func (k *KubeServer) DynamicClient(t testing.TB) dynamic.Interface {
	t.Helper()
	return k.DynamicClientAs(t, "")
}

// Stop stops the server with a signal. The test must start it again for later tests.
func (k *KubeServer) Stop(t testing.TB) {
	t.Helper()
	if err := k.cluster.server.Stop(); err != nil {
		t.Fatal(err)
	}
}

// Kill kills the server, like a crash. The test must start it again for later tests.
func (k *KubeServer) Kill() { k.cluster.server.Kill() }

// Start starts the server again, with the same objects and the same address.
func (k *KubeServer) Start(t testing.TB) {
	t.Helper()
	if err := k.cluster.startServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Backup stops the server, copies all its state and starts it again. The returned function stops the server, replaces
// its state by the copy, and starts it again.
func (k *KubeServer) Backup(t testing.TB) (restore func()) {
	t.Helper()
	backup, dir := t.TempDir(), k.cluster.dir
	k.Stop(t)
	if err := replaceDir(backup, dir); err != nil {
		t.Fatal(err)
	}
	k.Start(t)
	return func() {
		t.Helper()
		k.Stop(t)
		if err := replaceDir(dir, backup); err != nil {
			t.Fatal(err)
		}
		k.Start(t)
	}
}

// replaceDir replaces a directory by a copy of another one.
func replaceDir(dir, other string) error {
	return errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(other)))
}
