// Package v1alpha1 holds the custom resources of core.platform-mesh.io/v1alpha1: Store, which declares an OpenFGA
// store, and AuthorizationModel, which is one module of a store's model. Field names and finalizers equal those of
// Platform Mesh's CRDs, so existing manifests apply unchanged. Entail's own fields are optional.
//
// +kubebuilder:object:generate=true
// +groupName=core.platform-mesh.io
package v1alpha1
