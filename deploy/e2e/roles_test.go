//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// impliedRolesBecomeBindings applies the sample of implied roles, makes a user an admin, and deletes a rule.
func impliedRolesBecomeBindings(t *testing.T, m *machine) {
	t.Helper()
	objects := m.objects(t)
	applySamples(t, m, "impliedroles.yaml")
	bindings := objects.Resource(rbacv1.SchemeGroupVersion.WithResource("rolebindings")).Namespace("default")
	alice := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "RoleBinding", "metadata": map[string]any{"name": "alice"},
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "Role", "name": "admin"},
		"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": "User", "name": "alice"}},
	}}
	if _, err := bindings.Create(t.Context(), alice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	holds := func(role, want string) func(context.Context) error {
		return func(context.Context) error {
			if out, code := m.ask(t, "who-has", role); code != 0 || !bytes.Contains(out, []byte(want)) {
				return fmt.Errorf("exit code %d: %s", code, out)
			}
			return nil
		}
	}
	eventually(t, soon, "alice is a writer", holds("writer", "user:alice"))
	eventually(t, soon, "the bindings are there", func(ctx context.Context) error {
		list, err := bindings.List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=implied-role"})
		if err == nil && len(list.Items) != 3 {
			err = fmt.Errorf("%d of 3 bindings", len(list.Items))
		}
		return err
	})
	if out, code := m.ask(t, "inferences", "--tree"); code != 0 || !bytes.Contains(out, []byte("└─ writer")) {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := m.ask(t, "explain", "rolebinding", "alice"); code != 0 || !bytes.Contains(out, []byte("admin -> developer -> writer")) {
		t.Errorf("exit code %d: %s", code, out)
	}
	sample := filepath.Join("deploy", "samples", "impliedroles.yaml")
	if out, code := m.ask(t, "preview", "rules", "-f", sample); code != 0 || !bytes.Contains(out, []byte("0 RoleBindings to create")) {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := m.ask(t, "preview", "rules", "--remove", "developer-writer"); code != 0 || !bytes.Contains(out, []byte("user:alice")) {
		t.Errorf("exit code %d: %s", code, out)
	}
	rules := objects.Resource(schema.GroupVersionResource{Group: "role.k8s.com", Version: "v1alpha1", Resource: "impliedroles"}).Namespace("default")
	if err := rules.Delete(t.Context(), "developer-writer", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "alice is a writer no more", func(context.Context) error {
		// Neither a Role nor a rule has the name any more, so the question names nothing.
		if out, code := m.ask(t, "who-has", "writer"); code != 3 {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		return nil
	})
	eventually(t, soon, "her binding is gone", func(ctx context.Context) error {
		list, err := bindings.List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=implied-role"})
		if err == nil && len(list.Items) != 2 {
			err = fmt.Errorf("%d of 2 bindings", len(list.Items))
		}
		return err
	})
}
