package testbed

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

const cleanWithin = 2 * time.Minute

// KubeServer is the Kubernetes API server of this test binary, with Entail's CRDs and admission policies.
type KubeServer struct {
	Traffic
	cluster *cluster
}

// Kube starts the API server, or finds it running; it is one for all tests of the
// binary, which therefore use it one at a time. When the test ends, all of Entail's
// objects and all leases go, whatever finalizers they have.
func Kube(t testing.TB) *KubeServer {
	t.Helper()
	c, err := shared.started(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k := &KubeServer{cluster: c}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanWithin)
		defer cancel()
		_, err := shared.started(ctx)
		if err == nil {
			err = clean(ctx, k.Objects(t))
		}
		if err != nil {
			t.Errorf("cleaning up after the test: %v", err)
		}
	})
	return k
}

// Config leads a service to this server, with the rights that it is shipped with and through
// this server's [Traffic]. It is good over restarts.
func (k *KubeServer) Config(t testing.TB, service string) *rest.Config {
	t.Helper()
	cfg, err := k.cluster.server.ConfigOf(service)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return roundTripper{traffic: &k.Traffic, next: next} })
	return cfg
}

// Kubeconfig is a file that leads a service in another process to this server, with the
// rights that it is shipped with.
func (k *KubeServer) Kubeconfig(service string) string {
	return k.cluster.server.KubeconfigOf(service)
}

// Admin leads a client of the test's own to this server, outside of [Traffic].
func (k *KubeServer) Admin() *rest.Config {
	cfg := rest.CopyConfig(k.cluster.config)
	cfg.QPS = -1
	return cfg
}

// Objects is a client of the test's own, outside of [Traffic].
func (k *KubeServer) Objects(t testing.TB) dynamic.Interface {
	t.Helper()
	return k.ObjectsAs(t, "")
}

// Stop ends the server as a signal would. Later tests need it again: Start it.
func (k *KubeServer) Stop(t testing.TB) {
	t.Helper()
	if err := k.cluster.server.Stop(); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the server as a crash would. Later tests need it again: Start it.
func (k *KubeServer) Kill() { k.cluster.server.Kill() }

// Start starts the server again, with the same objects at the same place.
func (k *KubeServer) Start(t testing.TB) {
	t.Helper()
	if err := k.cluster.start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Backup copies all that the server keeps, while it is stopped; restore makes that all there is.
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

// replaceDir makes a directory equal to another one.
func replaceDir(dir, other string) error {
	return errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(other)))
}
