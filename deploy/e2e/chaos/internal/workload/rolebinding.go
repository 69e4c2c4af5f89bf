package workload

import (
	"math/rand/v2"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RoleBindings returns the resource of kind RoleBinding.
func RoleBindings() schema.GroupVersionResource {
	return rbacv1.SchemeGroupVersion.WithResource("rolebindings")
}

// RoleResource returns the resource of kind Role.
func RoleResource() schema.GroupVersionResource {
	return rbacv1.SchemeGroupVersion.WithResource("roles")
}

func roleBindings() Kind {
	return Kind{
		Resource: RoleBindings(), Weight: 4,
		Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
			o := object(RoleBindings(), "RoleBinding", drawOne(r, Namespaces()...), numbered(r, "binding-", bindingNames))
			role := drawOne(r, Roles()...)
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
		// The API server forbids changes of the role of a RoleBinding.
		Fixed: func(before, after *unstructured.Unstructured) bool {
			was, _, _ := unstructured.NestedString(before.Object, "roleRef", "name")
			is, _, _ := unstructured.NestedString(after.Object, "roleRef", "name")
			return was != is
		},
	}
}

// roles draws roles whose holders may read one ConfigMap, which has the name of the role.
func roles() Kind {
	return Kind{Resource: RoleResource(), Weight: 1, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
		return role(drawOne(r, Namespaces()...), drawOne(r, Roles()...)), ""
	}, Once: allRoles()}
}

// namespaces returns the namespaces, which are created first and never change.
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
