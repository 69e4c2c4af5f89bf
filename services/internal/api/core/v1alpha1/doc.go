// Package v1alpha1 holds the custom resources of core.platform-mesh.io/v1alpha1:
// Store, an OpenFGA store as people declare it, and AuthorizationModel, one module
// of a store's model. Field names and finalizers are those of the CRDs that
// Platform Mesh publishes, so existing manifests apply unchanged; what Entail adds is optional.
//
// +kubebuilder:object:generate=true
// +groupName=core.platform-mesh.io
package v1alpha1
