// Package v1 holds the custom resources of opensearch.org/v1: who may do what in an OpenSearch cluster. Field names,
// states and the finalizer are those of the CRDs that the public operator publishes, so existing manifests apply
// unchanged; what Entail adds is optional.
//
// +kubebuilder:object:generate=true
// +groupName=opensearch.org
package v1
