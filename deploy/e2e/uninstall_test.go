//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// share applies a kind as other software, too.
func (m *machine) share(t *testing.T, kind, group string) {
	t.Helper()
	definitions := m.objects(t).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	also := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"` + kind + "." + group + `"},"spec":{"group":"` + group + `"}}`
	options := metav1.PatchOptions{FieldManager: "operator"}
	if _, err := definitions.Patch(t.Context(), kind+"."+group, types.ApplyPatchType, []byte(also), options); err != nil {
		t.Fatal(err)
	}
}

func TestUninstallRefusesWhileServicesHoldObjectsOfOthers(t *testing.T) {
	m := upIn(t, t.TempDir(), ".entail", "--samples", "builtin")
	objects := m.objects(t)
	stores := objects.Resource(resource("stores"))
	users := objects.Resource(schema.GroupVersionResource{Group: "opensearch.org", Version: "v1", Resource: "opensearchusers"}).Namespace("default")
	protected := objects.Resource(schema.GroupVersionResource{Group: "iam.miloapis.com", Version: "v1alpha1", Resource: "protectedresources"})
	eventually(t, soon, "the sample is ready", func(ctx context.Context) error { return ready(ctx, stores, "demo") })
	eventually(t, soon, "IAM has a store", func(ctx context.Context) error { return ready(ctx, stores, "iam") })
	m.share(t, "opensearchusers", "opensearch.org")
	m.share(t, "protectedresources", "iam.miloapis.com")
	held := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "opensearch.org/v1", "kind": "OpensearchUser",
		"metadata": map[string]any{"name": "held", "finalizers": []any{"opensearch.org/opensearch-data"}},
		"spec":     map[string]any{"opensearchCluster": map[string]any{"name": "absent"}, "passwordFrom": map[string]any{"name": "a", "key": "b"}},
	}}
	if _, err := users.Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	refused := func(want string) {
		t.Helper()
		cmd := entail(t, "uninstall", "--delete-objects", "--kubeconfig", m.Kubeconfig)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), want) || !strings.Contains(string(out), "--leave-shared") {
			t.Errorf("exit code %d, want 2 and %q: %s", code, want, out)
		}
		if err := ready(t.Context(), stores, "demo"); err != nil {
			t.Errorf("nothing was to be removed: %v", err)
		}
	}
	refused("opensearchusers.opensearch.org default/held, held by opensearch.org/opensearch-data")
	refused(" protectedresources.iam.miloapis.com")
	if err := protected.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if out, code := m.ask(t, "uninstall", "--delete-objects", "--leave-shared", "--kubeconfig", m.Kubeconfig); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	if left, err := users.Get(t.Context(), "held", metav1.GetOptions{}); err != nil || left.GetDeletionTimestamp() != nil || len(left.GetFinalizers()) != 1 {
		t.Errorf("what is another's is %v, %v", left, err)
	}
	if _, err := stores.List(t.Context(), metav1.ListOptions{}); wantNotFound(err) != nil {
		t.Errorf("a kind of ours: %v", err)
	}
}

// wantNotFound returns nil if err means that an object does not exist.
func wantNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("it is there (%w)", err)
}

func TestUninstallRemovesEverythingThatInstallMade(t *testing.T) {
	m := upIn(t, t.TempDir(), ".entail", "--samples", "builtin")
	objects := m.objects(t)
	stores := objects.Resource(resource("stores"))
	eventually(t, soon, "the sample is ready", func(ctx context.Context) error { return ready(ctx, stores, "demo") })
	if _, code := m.ask(t, "uninstall", "--kubeconfig", m.Kubeconfig); code != 2 {
		t.Fatalf("with objects there: exit code %d, want 2", code)
	}
	if err := ready(t.Context(), stores, "demo"); err != nil {
		t.Fatalf("nothing was to be removed: %v", err)
	}
	if out, code := m.ask(t, "uninstall", "--delete-objects", "--kubeconfig", m.Kubeconfig); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	for group, resources := range map[string][]string{
		"apiextensions.k8s.io":         {"customresourcedefinitions"},
		"admissionregistration.k8s.io": {"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations"},
		"rbac.authorization.k8s.io":    {"clusterroles", "clusterrolebindings", "roles", "rolebindings"},
	} {
		for _, name := range resources {
			list, err := objects.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, left := range list.Items {
				if group != "rbac.authorization.k8s.io" || strings.HasPrefix(left.GetName(), "entail") {
					t.Errorf("%s %s is left", name, left.GetName())
				}
			}
		}
	}
	if out, code := m.ask(t, "uninstall", "--kubeconfig", m.Kubeconfig); code != 0 {
		t.Errorf("where nothing is: exit code %d: %s", code, out)
	}
}
