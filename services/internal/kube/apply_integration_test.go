//go:build integration

package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func binding(name string, who ...string) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"ours": "yes"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
	}
	for _, name := range who {
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name})
	}
	return b
}

func bindingKey(name string) event.Key {
	return event.Key{Cluster: "local", GroupResource: kinds.RoleBindings().GroupResource, Namespace: "default", Name: name}
}

func typed(t *testing.T, server *testenv.KubeServer) kubernetes.Interface {
	t.Helper()
	typed, err := kubernetes.NewForConfig(server.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	return typed
}

func read(t *testing.T, change event.Change) *rbacv1.RoleBinding {
	t.Helper()
	b := &rbacv1.RoleBinding{}
	if err := json.Unmarshal(change.Object, b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCreateRefusesExistingObject(t *testing.T) {
	server := testenv.StartKube(t)
	c := client(t, server, topology.ImpliedRole)
	foreign := binding("taken", "mallory")
	foreign.Labels = nil
	if _, err := typed(t, server).RbacV1().RoleBindings("default").Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for how, makes := range map[string]func(name, user string) (event.Change, error){
		"applied": func(name, user string) (event.Change, error) {
			return c.Apply(t.Context(), kinds.RoleBindings(), event.Change{Key: bindingKey(name)}, binding(name, user))
		},
		"created": func(name, user string) (event.Change, error) {
			return c.Create(t.Context(), kinds.RoleBindings(), bindingKey(name), binding(name, user))
		},
	} {
		t.Run(how, func(t *testing.T) {
			if _, err := makes("taken", "mallory"); !errors.Is(err, kube.ErrConflict) || !fault.IsUnavailable(err) {
				t.Errorf("over a foreign object: %v", err)
			}
			is, err := c.Get(t.Context(), kinds.RoleBindings(), "default", "taken")
			if err != nil || len(read(t, is).Labels) > 0 {
				t.Errorf("the foreign object is %s, %v", is.Object, err)
			}
			made, err := makes(how, "alice")
			if err != nil || made.UID == "" || made.Generation != 0 || read(t, made).Subjects[0].Name != "alice" {
				t.Errorf("made %+v, %v", made, err)
			}
			if _, err := makes(how, "alice"); !errors.Is(err, kube.ErrConflict) {
				t.Errorf("made twice: %v", err)
			}
		})
	}
}

func TestApplyRequiresSeenVersion(t *testing.T) {
	server := testenv.StartKube(t)
	c := client(t, server, topology.ImpliedRole)
	made, err := c.Apply(t.Context(), kinds.RoleBindings(), event.Change{Key: bindingKey("b")}, binding("b", "alice"))
	if err != nil {
		t.Fatal(err)
	}
	bindings := typed(t, server).RbacV1().RoleBindings("default")
	patch := []byte(`{"metadata":{"labels":{"theirs":"yes"}},"subjects":null}`)
	if _, err := bindings.Patch(t.Context(), "b", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(t.Context(), kinds.RoleBindings(), made, binding("b", "bob")); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("over a newer state: %v", err)
	}
	if err := c.Delete(t.Context(), kinds.RoleBindings(), made); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("deleting a newer state: %v", err)
	}
	seen, err := c.Get(t.Context(), kinds.RoleBindings(), "default", "b")
	if err != nil {
		t.Fatal(err)
	}
	mended, err := c.Apply(t.Context(), kinds.RoleBindings(), seen, binding("b", "bob"))
	if err != nil {
		t.Fatal(err)
	}
	if b := read(t, mended); b.Labels["theirs"] != "yes" || b.Labels["ours"] != "yes" || len(b.Subjects) != 1 || mended.UID != made.UID {
		t.Errorf("mended %+v", b)
	}
	again, err := c.Apply(t.Context(), kinds.RoleBindings(), mended, binding("b", "bob"))
	if err != nil || again.ResourceVersion != mended.ResourceVersion {
		t.Errorf("the same once more: %+v, %v", again, err)
	}
	if err := errors.Join(c.Delete(t.Context(), kinds.RoleBindings(), mended), c.Delete(t.Context(), kinds.RoleBindings(), mended)); err != nil {
		t.Errorf("deleting twice: %v", err)
	}
	another, err := c.Apply(t.Context(), kinds.RoleBindings(), event.Change{Key: bindingKey("b")}, binding("b", "carol"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), kinds.RoleBindings(), mended); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("deleting another of its name: %v", err)
	}
	if _, err := c.Apply(t.Context(), kinds.RoleBindings(), mended, binding("b", "bob")); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("changing another of its name: %v", err)
	}
	if err := c.Delete(t.Context(), kinds.RoleBindings(), another); err != nil {
		t.Error(err)
	}
	if _, err := c.Apply(t.Context(), kinds.RoleBindings(), another, binding("b", "bob")); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("change of a deleted object: got %v, want ErrConflict", err)
	}
}

func TestMergePatchRequiresSeenVersion(t *testing.T) {
	server := testenv.StartKube(t)
	c := client(t, server, topology.ImpliedRole)
	seen, err := c.Apply(t.Context(), kinds.RoleBindings(), event.Change{Key: bindingKey("merged")}, binding("merged", "u"))
	if err != nil {
		t.Fatal(err)
	}
	nobody := map[string]any{"subjects": []any{}}
	now, err := c.MergePatch(t.Context(), kinds.RoleBindings(), seen, nobody)
	if err != nil || len(read(t, now).Subjects) != 0 || read(t, now).Labels["ours"] != "yes" || len(nobody) != 1 {
		t.Errorf("it became %s, %v", now.Object, err)
	}
	stale := func(what string, old event.Change) {
		t.Helper()
		if _, err := c.MergePatch(t.Context(), kinds.RoleBindings(), old, nobody); !errors.Is(err, kube.ErrConflict) || !fault.IsUnavailable(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	stale("of an older state", seen)
	if err := c.Delete(t.Context(), kinds.RoleBindings(), now); err != nil {
		t.Fatal(err)
	}
	stale("of one that is gone", now)
	if _, err := c.Apply(t.Context(), kinds.RoleBindings(), event.Change{Key: bindingKey("merged")}, binding("merged", "u")); err != nil {
		t.Fatal(err)
	}
	stale("of another", now)
}

// TestMergePatchReplacesListsAndKeepsOtherFields replaces the owners of an object. The client is the one that created
// the object.
func TestMergePatchReplacesListsAndKeepsOtherFields(t *testing.T) {
	server := testenv.StartKube(t)
	c := client(t, server, topology.ImpliedRole)
	owner := func() []metav1.OwnerReference {
		is, err := typed(t, server).CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "owner-"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: is.Name, UID: is.UID}}
	}
	owned, after := binding("owned", "u"), owner()
	owned.OwnerReferences = owner()
	made, err := c.Create(t.Context(), kinds.RoleBindings(), bindingKey("owned"), owned)
	if err != nil {
		t.Fatal(err)
	}
	if is := read(t, made); is.Name != "owned" || string(is.UID) != made.UID || len(is.ManagedFields) > 0 || !slices.Equal(is.Subjects, owned.Subjects) {
		t.Errorf("it was made as %s", made.Object)
	}
	now, err := c.MergePatch(t.Context(), kinds.RoleBindings(), made, map[string]any{"metadata": map[string]any{
		"labels": map[string]string{"more": "yes"}, "ownerReferences": after,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if is := read(t, now); !slices.Equal(is.OwnerReferences, after) ||
		is.Labels["ours"] != "yes" || is.Labels["more"] != "yes" || len(is.Subjects) != 1 {
		t.Errorf("it became %s", now.Object)
	}
}

func TestCreateFailsInTerminatingNamespace(t *testing.T) {
	server := testenv.StartKube(t)
	c, namespaces := client(t, server, topology.ImpliedRole), typed(t, server).CoreV1().Namespaces()
	name := "going"
	held := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/held"}}}
	if _, err := namespaces.Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := namespaces.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	key := bindingKey("b")
	key.Namespace = name
	_, err := c.Apply(t.Context(), kinds.RoleBindings(), event.Change{Key: key}, binding("b", "alice"))
	if !errors.Is(err, kube.ErrTerminating) || fault.IsUnavailable(err) {
		t.Errorf("in a namespace that goes: %v", err)
	}
	if _, err := namespaces.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	key.Namespace = "absent"
	if _, err = c.Apply(t.Context(), kinds.RoleBindings(), event.Change{Key: key}, binding("b", "alice")); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("absent namespace: got %v, want ErrNotFound", err)
	}
}

func TestListReadsAllPages(t *testing.T) {
	server := testenv.StartKube(t)
	c, want := client(t, server, topology.ImpliedRole), 0
	for i := range 510 {
		name := fmt.Sprintf("b%03d", i)
		if _, err := c.Apply(t.Context(), kinds.RoleBindings(), event.Change{Key: bindingKey(name)}, binding(name, "alice")); err != nil {
			t.Fatal(err)
		}
		want++
	}
	var names []string
	for change, err := range c.List(t.Context(), kinds.RoleBindings(), "default") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, read(t, change).Name)
	}
	if len(names) != want || !slices.IsSorted(names) {
		t.Errorf("listed %d, want %d", len(names), want)
	}
	server.FailBefore(func(context.Context, string) error { return errors.New("away") })
	n := 0
	for _, err := range c.List(t.Context(), kinds.RoleBindings(), "default") {
		if n++; !fault.IsUnavailable(err) {
			t.Errorf("of a server that is away: %v", err)
		}
	}
	if n != 1 {
		t.Errorf("%d results of a server that is away", n)
	}
	server.FailBefore(nil)
}
