//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// userCluster starts a cluster that outlives `entail up`.
func userCluster(t *testing.T) (kubeconfig, server string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(filepath.Dir(entail(t).Path), "kube-local"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--data-dir", t.TempDir(), "--unsafe-no-fsync", "--user", "dev")
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

// TestEntailUpUsesClusterOfUser runs against one cluster twice: as a user who may not impersonate, and as its administrator.
func TestEntailUpUsesClusterOfUser(t *testing.T) {
	kubeconfig, server := userCluster(t)
	admin := &machine{Kubeconfig: kubeconfig}
	objects := admin.objects(t)
	t.Run("as a user who may not impersonate", func(t *testing.T) {
		mayDoAllButImpersonate(t, objects, "dev")
		m := up(t, t.TempDir(), "--kubeconfig="+filepath.Join(filepath.Dir(kubeconfig), "dev.kubeconfig"), "--samples", "deploy/samples")
		if m.Kubernetes != server || !strings.Contains(m.words.String(), "services act with your rights") {
			t.Errorf("cluster: got %s, want %s; progress: %s", m.Kubernetes, server, m.words)
		}
		sampleComesAndGoes(t, objects, func() {
			namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
			if _, err := objects.Resource(namespaces).Get(t.Context(), "entail-system", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("namespace of accounts that nothing uses: got %v, want not found", err)
			}
		})
		m.stop(t, syscall.SIGTERM)
	})
	t.Run("as its administrator", func(t *testing.T) {
		t.Setenv("KUBECONFIG", kubeconfig)
		m := up(t, t.TempDir(), "--use-cluster", "--samples", "deploy/samples")
		if m.Kubernetes != server {
			t.Fatalf("cluster: got %s, want %s", m.Kubernetes, server)
		}
		sampleComesAndGoes(t, objects, func() {
			if _, err := objects.Resource(leases()).Namespace("entail-system").Get(t.Context(), "entail-watcher", metav1.GetOptions{}); err != nil {
				t.Errorf("lease of the watcher, by its own account: %v", err)
			}
			rules := objects.Resource(schema.GroupVersionResource{Group: "role.k8s.com", Version: "v1alpha1", Resource: "impliedroles"}).Namespace("default")
			eventually(t, soon, "no rule is accepted where admission does not ask about rules", func(ctx context.Context) error {
				got, err := condition(ctx, rules, "admin-developer", "Accepted")
				if err == nil && !strings.HasPrefix(got, "False Unguarded") {
					err = fmt.Errorf("condition Accepted is %s", got)
				}
				return err
			})
		})
		m.stop(t, syscall.SIGTERM)
	})
}

// sampleComesAndGoes waits for the first sample, calls a function, and deletes the sample.
func sampleComesAndGoes(t *testing.T, objects dynamic.Interface, meanwhile func()) {
	t.Helper()
	stores, models := objects.Resource(resource("stores")), objects.Resource(resource("authorizationmodels"))
	eventually(t, soon, "the sample is ready", func(ctx context.Context) error { return ready(ctx, stores, "demo") })
	meanwhile()
	for _, err := range []error{
		models.Delete(t.Context(), "demo-documents", metav1.DeleteOptions{}), stores.Delete(t.Context(), "demo", metav1.DeleteOptions{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, soon, "the store is gone", func(ctx context.Context) error { return gone(ctx, stores, "demo") })
}

// mayDoAllButImpersonate gives a user all rights except impersonation.
func mayDoAllButImpersonate(t *testing.T, objects dynamic.Interface, user string) {
	t.Helper()
	group := rbacv1.SchemeGroupVersion
	for kind, content := range map[string]map[string]any{
		"ClusterRole": {"rules": []any{map[string]any{
			"apiGroups": []any{"*"}, "resources": []any{"*"},
			"verbs": []any{"get", "list", "watch", "create", "update", "patch", "delete", "bind", "escalate", "extend", "record"},
		}}},
		"ClusterRoleBinding": {
			"roleRef":  map[string]any{"apiGroup": group.Group, "kind": "ClusterRole", "name": user},
			"subjects": []any{map[string]any{"apiGroup": group.Group, "kind": "User", "name": user}},
		},
	} {
		content["apiVersion"], content["kind"], content["metadata"] = group.String(), kind, map[string]any{"name": user}
		api := objects.Resource(group.WithResource(strings.ToLower(kind) + "s"))
		if _, err := api.Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func leases() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
}
