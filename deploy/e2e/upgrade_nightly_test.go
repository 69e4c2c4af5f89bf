//go:build e2e && nightly

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// TestUpgradeContinuesWithStateOfEarlierRelease creates state with the program of scripts/earlier.sh. Then the present
// program, the earlier one and the present one continue with it, as docs/operate/upgrade.md promises. Finally it uninstalls
// everything.
func TestUpgradeContinuesWithStateOfEarlierRelease(t *testing.T) {
	now, err := filepath.Abs(filepath.Dir(entail(t).Path))
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), ".entail")
	of := map[string]string{"earlier": filepath.Join(now, "earlier"), "now": now}
	begin := func(which string, flags ...string) (*machine, dynamic.Interface) {
		t.Setenv("ENTAIL_BIN", of[which])
		m := upIn(t, t.TempDir(), state, flags...)
		return m, m.objects(t)
	}

	m, objects := begin("earlier", "--samples", "builtin")
	applySamples(t, m, "policydocuments/loadbalancer.yaml")
	bind(t, objects, "alice")
	settled(t, objects)
	id := field(t, objects.Resource(resource("stores")), "status", "storeId")
	check(t, m, "user:beth viewer document:roadmap", true)
	m.stop(t, syscall.SIGTERM)

	m, objects = begin("now")
	settled(t, objects)
	if is := field(t, objects.Resource(resource("stores")), "status", "storeId"); is != id || id == "" {
		t.Errorf("store ID after the upgrade: got %q, want %q", is, id)
	}
	check(t, m, "user:beth viewer document:roadmap", true)
	statusKnowsEveryService(t, m)
	dropTuplesOf(t, objects.Resource(resource("stores")), "user:beth")
	bind(t, objects, "bob")
	settled(t, objects)
	check(t, m, "user:beth viewer document:roadmap", false)
	m.stop(t, syscall.SIGTERM)

	m, objects = begin("earlier")
	settled(t, objects)
	check(t, m, "user:beth viewer document:roadmap", false)
	check(t, m, "user:anne editor document:roadmap", true)
	m.stop(t, syscall.SIGTERM)

	m, objects = begin("now")
	settled(t, objects)
	check(t, m, "user:anne editor document:roadmap", true)
	if out, code := m.ask(t, "uninstall", "--delete-objects", "--kubeconfig", m.Kubeconfig); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	m.stop(t, os.Interrupt)
}

func roleBindings(objects dynamic.Interface) dynamic.ResourceInterface {
	return objects.Resource(rbacv1.SchemeGroupVersion.WithResource("rolebindings")).Namespace("default")
}

// bind makes a user an admin. The sample implies three more roles.
func bind(t *testing.T, objects dynamic.Interface, user string) {
	t.Helper()
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "RoleBinding", "metadata": map[string]any{"name": user},
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "Role", "name": "admin"},
		"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": "User", "name": user}},
	}}
	if _, err := roleBindings(objects).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// settled waits until every object of the samples is ready, and every implied RoleBinding exists.
func settled(t *testing.T, objects dynamic.Interface) {
	t.Helper()
	iam := func(name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "iam.miloapis.com", Version: "v1alpha1", Resource: name}
	}
	for _, kind := range []schema.GroupVersionResource{
		resource("stores"), resource("authorizationmodels"),
		{Group: "iapl.infratographer.com", Version: "v1alpha1", Resource: "policydocuments"},
		{Group: "role.k8s.com", Version: "v1alpha1", Resource: "impliedroles"},
		iam("protectedresources"), iam("roles"), iam("policybindings"), iam("groupmemberships"),
	} {
		eventually(t, soon, kind.Resource+" are ready", func(ctx context.Context) error {
			list, err := objects.Resource(kind).List(ctx, metav1.ListOptions{})
			if err != nil || len(list.Items) == 0 {
				return errors.Join(err, errors.New("got no objects, want some"))
			}
			var errs []error
			for _, o := range list.Items {
				errs = append(errs, ready(ctx, objects.Resource(kind).Namespace(o.GetNamespace()), o.GetName()))
			}
			return errors.Join(errs...)
		})
	}
	eventually(t, soon, "the bindings that follow are made", func(ctx context.Context) error {
		list, err := roleBindings(objects).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		made := slices.DeleteFunc(slices.Clone(list.Items), func(b unstructured.Unstructured) bool {
			return b.GetLabels()["app.kubernetes.io/managed-by"] != "implied-role"
		})
		declared := slices.DeleteFunc(list.Items, func(b unstructured.Unstructured) bool { return !slices.Contains([]string{"alice", "bob"}, b.GetName()) })
		if len(declared) == 0 || len(made) != 3*len(declared) {
			err = fmt.Errorf("got %d bindings that follow from %d, want 3 for each", len(made), len(declared))
		}
		return err
	})
}
