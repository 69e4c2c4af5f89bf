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
)

// userCluster is a cluster that is there before `entail up` and after it.
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
			if _, err := objects.Resource(leases()).Namespace("entail-system").Get(t.Context(), "entail-watcher", metav1.GetOptions{}); err != nil {
				t.Errorf("the watcher does not lead by its own account: %v", err)
			}
			stores, models := objects.Resource(resource("stores")), objects.Resource(resource("authorizationmodels"))
			eventually(t, soon, "the sample is ready", func(ctx context.Context) error { return ready(ctx, stores, "demo") })
			rules := objects.Resource(schema.GroupVersionResource{Group: "role.k8s.com", Version: "v1alpha1", Resource: "impliedroles"}).Namespace("default")
			eventually(t, soon, "no rule holds where nobody is asked about rules", func(ctx context.Context) error {
				got, err := condition(ctx, rules, "admin-developer", "Accepted")
				if err == nil && !strings.HasPrefix(got, "False Unguarded") {
					err = fmt.Errorf("condition Accepted is %s", got)
				}
				return err
			})
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

// TestServicesActAsAUserWhoMayNotImpersonate runs as somebody who may do anything else.
func TestServicesActAsAUserWhoMayNotImpersonate(t *testing.T) {
	kubeconfig, _ := userCluster(t)
	m := &machine{Kubeconfig: kubeconfig}
	objects := m.objects(t)
	group := rbacv1.SchemeGroupVersion
	for kind, content := range map[string]map[string]any{
		"ClusterRole": {"rules": []any{map[string]any{
			"apiGroups": []any{"*"}, "resources": []any{"*"},
			"verbs": []any{"get", "list", "watch", "create", "update", "patch", "delete", "bind", "escalate", "extend"},
		}}},
		"ClusterRoleBinding": {
			"roleRef":  map[string]any{"apiGroup": group.Group, "kind": "ClusterRole", "name": "dev"},
			"subjects": []any{map[string]any{"apiGroup": group.Group, "kind": "User", "name": "dev"}},
		},
	} {
		content["apiVersion"], content["kind"], content["metadata"] = group.String(), kind, map[string]any{"name": "dev"}
		api := objects.Resource(group.WithResource(strings.ToLower(kind) + "s"))
		if _, err := api.Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	m = up(t, t.TempDir(), "--kubeconfig="+filepath.Join(filepath.Dir(kubeconfig), "dev.kubeconfig"), "--samples", "deploy/samples")
	if !strings.Contains(m.words.String(), "services act as you") {
		t.Errorf("said is %s", m.words)
	}
	eventually(t, soon, "the sample is ready", func(ctx context.Context) error {
		return ready(ctx, objects.Resource(resource("stores")), "demo")
	})
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	if _, err := objects.Resource(namespaces).Get(t.Context(), "entail-system", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("accounts were made for nothing: %v", err)
	}
	m.stop(t, syscall.SIGTERM)
}

func leases() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
}
