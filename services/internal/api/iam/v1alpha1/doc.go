// Package v1alpha1 holds the custom resources of iam.miloapis.com/v1alpha1. ProtectedResource registers a kind and its
// permissions, Role is a set of permissions, and PolicyBinding gives a role to subjects on objects. User,
// ServiceAccount, Group and GroupMembership are the subjects. Field names, validation and conditions equal those of
// Milo's CRDs, so existing manifests apply unchanged. Entail's own fields are optional.
//
// +kubebuilder:object:generate=true
// +groupName=iam.miloapis.com
package v1alpha1
