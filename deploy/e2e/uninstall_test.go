//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestUninstallTakesAwayWhatInstallGave(t *testing.T) {
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
