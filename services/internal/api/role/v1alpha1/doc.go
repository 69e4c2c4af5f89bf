// Package v1alpha1 holds the custom resource of role.k8s.com/v1alpha1: ImpliedRoles, a rule that gives a child role to
// all subjects with a parent role. Its field names, including snake case, equal those of the original design. Entail's
// own fields are optional.
//
// +kubebuilder:object:generate=true
// +groupName=role.k8s.com
package v1alpha1
