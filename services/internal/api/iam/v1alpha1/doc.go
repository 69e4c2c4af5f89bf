// Package v1alpha1 holds the custom resources of iam.miloapis.com/v1alpha1: which kinds are
// protected and by what permissions (ProtectedResource), what goes together (Role), who gets it
// on what (PolicyBinding), and who there is (User, ServiceAccount, Group, GroupMembership).
// Field names, validation and conditions are those of the CRDs that Milo publishes, so existing
// manifests apply unchanged; what Entail adds is optional.
//
// +kubebuilder:object:generate=true
// +groupName=iam.miloapis.com
package v1alpha1
