//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// policyDocumentsBecomeModel applies the sample documents before their store, and deletes a document that others need.
func policyDocumentsBecomeModel(t *testing.T, m *machine) {
	t.Helper()
	applySamples(t, m, "policydocuments/loadbalancer.yaml") // The store may be created later.
	applySamples(t, m, "store.yaml")
	documents := m.objects(t).Resource(schema.GroupVersionResource{
		Group: "iapl.infratographer.com", Version: "v1alpha1", Resource: "policydocuments",
	}).Namespace("default")
	ready := func(want int) func(context.Context) error {
		return func(ctx context.Context) error {
			list, err := documents.List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			var found []string
			for _, d := range list.Items {
				conditions, _, _ := unstructured.NestedSlice(d.Object, "status", "conditions")
				for _, c := range conditions {
					if c, ok := c.(map[string]any); ok && c["type"] == "Ready" && c["status"] == "True" {
						found = append(found, d.GetName())
					}
				}
			}
			if len(found) != want {
				return fmt.Errorf("ready are %v, want %d", found, want)
			}
			return nil
		}
	}
	eventually(t, soon, "all documents are ready", ready(3))
	if out, code := m.ask(t, "model", "show", "demo"); code != 0 || !bytes.Contains(out, []byte("define loadbalancer_get_role: [role#assignee]")) {
		t.Errorf("exit code %d: %s", code, out)
	}
	if err := documents.Delete(t.Context(), "tenant-api", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "those that need it say so", ready(0))
	eventually(t, soon, "the model has lost the type of the deleted document alone", func(context.Context) error {
		out, code := m.ask(t, "model", "show", "demo")
		if code != 0 || bytes.Contains(out, []byte("type tenant\n")) || !bytes.Contains(out, []byte("type loadbalancer\n")) {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		return nil
	})
}
