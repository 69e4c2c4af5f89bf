package workload

import (
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	roleNames    = 6
	ruleNames    = 6
	bindingNames = 5
	people       = 4
)

// ImpliedRolesResource returns the resource of kind ImpliedRoles.
func ImpliedRolesResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "role.k8s.com", Version: "v1alpha1", Resource: "impliedroles"}
}

// NamespaceNames returns the namespaces with role bindings.
func NamespaceNames() []string { return numberedNames("team-", 2) }

// RoleNames returns the names of all roles of the workload.
func RoleNames() []string { return numberedNames("role-", roleNames) }

// PersonNames returns the names of all Kubernetes users of the workload.
func PersonNames() []string { return numberedNames("person-", people) }

// impliedRolesKind draws rules that form chains, diamonds and cycles.
func impliedRolesKind() ObjectKind {
	return ObjectKind{Resource: ImpliedRolesResource(), Weight: 4, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
		o := newObject(ImpliedRolesResource(), "ImpliedRoles", drawOne(r, NamespaceNames()...), drawNumbered(r, "rule-", ruleNames))
		parent, child := drawOne(r, RoleNames()...), drawOne(r, RoleNames()...)
		for child == parent {
			child = drawOne(r, RoleNames()...)
		}
		o.Object["spec"] = map[string]any{"inference_rule": map[string]any{"parent_role": parent, "child_role": child}}
		return o, parent + " implies " + child
	}}
}
