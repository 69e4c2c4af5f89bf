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

// ImpliedRoles returns the resource of kind ImpliedRoles.
func ImpliedRoles() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "role.k8s.com", Version: "v1alpha1", Resource: "impliedroles"}
}

// Namespaces returns the namespaces with role bindings.
func Namespaces() []string { return names("team-", 2) }

// Roles returns the names of all roles of the workload.
func Roles() []string { return names("role-", roleNames) }

// People returns the names of all Kubernetes users of the workload.
func People() []string { return names("person-", people) }

// impliedRoles draws rules that form chains, diamonds and cycles.
func impliedRoles() Kind {
	return Kind{Resource: ImpliedRoles(), Weight: 4, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
		o := object(ImpliedRoles(), "ImpliedRoles", drawOne(r, Namespaces()...), numbered(r, "rule-", ruleNames))
		parent, child := drawOne(r, Roles()...), drawOne(r, Roles()...)
		for child == parent {
			child = drawOne(r, Roles()...)
		}
		o.Object["spec"] = map[string]any{"inference_rule": map[string]any{"parent_role": parent, "child_role": child}}
		return o, parent + " implies " + child
	}}
}
