//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// userCluster is a cluster that is there before `entail up` and after it.
func userCluster(t *testing.T) (kubeconfig, server string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(filepath.Dir(entail(t).Path), "kube-local"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--data-dir", t.TempDir(), "--unsafe-no-fsync")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: run `make kube-local`", err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error("the cluster of the user ended before its time")
		}
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var ready struct{ Kubeconfig, Server string }
	if err := json.Unmarshal(line, &ready); err != nil {
		t.Fatal(err)
	}
	return ready.Kubeconfig, ready.Server
}

func TestAClusterOfTheUserIsUsedOnlyWhenAskedFor(t *testing.T) {
	kubeconfig, server := userCluster(t)
	t.Setenv("KUBECONFIG", kubeconfig)

	m := up(t, t.TempDir())
	if m.Kubernetes == server || !strings.Contains(m.words.String(), "--use-cluster") {
		t.Errorf("without a flag: %s is used, and said is %s", m.Kubernetes, m.words)
	}
	m.stop(t, syscall.SIGTERM)

	for _, flag := range []string{"--use-cluster", "--kubeconfig=" + kubeconfig} {
		t.Run(flag, func(t *testing.T) {
			m := up(t, t.TempDir(), flag, "--samples", "deploy/samples")
			if m.Kubernetes != server {
				t.Fatalf("%s is used, not %s", m.Kubernetes, server)
			}
			m.Kubeconfig = kubeconfig
			objects := m.objects(t)
			stores, models := objects.Resource(resource("stores")), objects.Resource(resource("authorizationmodels"))
			eventually(t, soon, "the sample is ready", func(ctx context.Context) error { return ready(ctx, stores, "demo") })
			for _, err := range []error{
				models.Delete(t.Context(), "demo-documents", metav1.DeleteOptions{}), stores.Delete(t.Context(), "demo", metav1.DeleteOptions{}),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, soon, "the store is gone", func(ctx context.Context) error { return gone(ctx, stores, "demo") })
			m.stop(t, syscall.SIGTERM)
		})
	}
}
