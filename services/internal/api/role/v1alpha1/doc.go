// Package v1alpha1 holds the custom resource of role.k8s.com/v1alpha1: ImpliedRoles, one
// rule that whoever holds a parent role also holds a child role. Its field names are those
// of the design that first described it, snake case included; what Entail adds is optional.
//
// +kubebuilder:object:generate=true
// +groupName=role.k8s.com
package v1alpha1
