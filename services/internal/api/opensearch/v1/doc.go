// Package v1 holds the custom resources of opensearch.org/v1, which declare users, roles and their permissions in an
// OpenSearch cluster. Field names, states and the finalizer equal those of the public operator's CRDs, so existing
// manifests apply unchanged. Entail's own fields are optional.
//
// +kubebuilder:object:generate=true
// +groupName=opensearch.org
package v1
