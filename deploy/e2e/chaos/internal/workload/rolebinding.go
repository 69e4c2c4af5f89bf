package workload

import (
	"math/rand/v2"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RoleBindings is the kind RoleBinding.
func RoleBindings() schema.GroupVersionResource {
	return rbacv1.SchemeGroupVersion.WithResource("rolebindings")
}

// RoleResource is the kind Role.
func RoleResource() schema.GroupVersionResource {
	return rbacv1.SchemeGroupVersion.WithResource("roles")
}

func roleBindings() Kind {
	return Kind{
		Resource: RoleBindings(), Weight: 4,
		Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
			o := object(RoleBindings(), "RoleBinding", some(r, Namespaces()...), numbered(r, "binding-", bindingNames))
			role := some(r, Roles()...)
			o.Object["roleRef"] = with(ofKind("Role", role), "apiGroup", rbacv1.GroupName)
			subjects := []any{}
			var who []string
			for _, person := range People() {
				if r.IntN(3) == 0 {
					subjects = append(subjects, with(ofKind(rbacv1.UserKind, person), "apiGroup", rbacv1.GroupName))
					who = append(who, person)
				}
			}
			o.Object["subjects"] = subjects
			return o, role + " for " + strings.Join(who, " and ")
		},
		// The API server lets nobody change the role of a RoleBinding.
		Fixed: func(before, after *unstructured.Unstructured) bool {
			was, _, _ := unstructured.NestedString(before.Object, "roleRef", "name")
			is, _, _ := unstructured.NestedString(after.Object, "roleRef", "name")
			return was != is
		},
	}
}

// roles each let their holders read one ConfigMap, of the role's name.
func roles() Kind {
	return Kind{Resource: RoleResource(), Weight: 1, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
		return role(some(r, Namespaces()...), some(r, Roles()...)), ""
	}, Once: allRoles()}
}

// namespaces are there before anything else, and stay.
func namespaces() Kind {
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	var all []*unstructured.Unstructured
	for _, name := range Namespaces() {
		all = append(all, object(gvr, "Namespace", "", name))
	}
	return Kind{Resource: gvr, Once: all}
}

func allRoles() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, namespace := range Namespaces() {
		for _, name := range Roles() {
			all = append(all, role(namespace, name))
		}
	}
	return all
}

func role(namespace, name string) *unstructured.Unstructured {
	o := object(RoleResource(), "Role", namespace, name)
	o.Object["rules"] = []any{map[string]any{
		"apiGroups": []any{""}, "resources": []any{"configmaps"}, "resourceNames": []any{name}, "verbs": []any{"get"},
	}}
	return o
}
