package workload

import (
	"math/rand/v2"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RoleBindingResource returns the resource of kind RoleBinding.
func RoleBindingResource() schema.GroupVersionResource {
	return rbacv1.SchemeGroupVersion.WithResource("rolebindings")
}

// RoleResource returns the resource of kind Role.
func RoleResource() schema.GroupVersionResource {
	return rbacv1.SchemeGroupVersion.WithResource("roles")
}

func roleBindingKind() ObjectKind {
	return ObjectKind{
		Resource: RoleBindingResource(), Weight: 4,
		Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
			o := newObject(RoleBindingResource(), "RoleBinding", drawOne(r, NamespaceNames()...), drawNumbered(r, "binding-", bindingNames))
			role := drawOne(r, RoleNames()...)
			o.Object["roleRef"] = withField(kindReference("Role", role), "apiGroup", rbacv1.GroupName)
			subjects := []any{}
			var who []string
			for _, person := range PersonNames() {
				if r.IntN(3) == 0 {
					subjects = append(subjects, withField(kindReference(rbacv1.UserKind, person), "apiGroup", rbacv1.GroupName))
					who = append(who, person)
				}
			}
			o.Object["subjects"] = subjects
			return o, role + " for " + strings.Join(who, " and ")
		},
		// The API server forbids changes of the role of a RoleBinding.
		Fixed: func(before, after *unstructured.Unstructured) bool {
			was, _, _ := unstructured.NestedString(before.Object, "roleRef", "name")
			is, _, _ := unstructured.NestedString(after.Object, "roleRef", "name")
			return was != is
		},
	}
}

// roleKind draws roles whose holders may read one ConfigMap, which has the name of the role.
func roleKind() ObjectKind {
	return ObjectKind{Resource: RoleResource(), Weight: 1, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
		return newRole(drawOne(r, NamespaceNames()...), drawOne(r, RoleNames()...)), ""
	}, Once: initialRoles()}
}

// namespaceKind returns the namespaces, which are created first and never change.
func namespaceKind() ObjectKind {
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	var all []*unstructured.Unstructured
	for _, name := range NamespaceNames() {
		all = append(all, newObject(gvr, "Namespace", "", name))
	}
	return ObjectKind{Resource: gvr, Once: all}
}

func initialRoles() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, namespace := range NamespaceNames() {
		for _, name := range RoleNames() {
			all = append(all, newRole(namespace, name))
		}
	}
	return all
}

func newRole(namespace, name string) *unstructured.Unstructured {
	o := newObject(RoleResource(), "Role", namespace, name)
	o.Object["rules"] = []any{map[string]any{
		"apiGroups": []any{""}, "resources": []any{"configmaps"}, "resourceNames": []any{name}, "verbs": []any{"get"},
	}}
	return o
}
