// Package v1alpha1 holds the custom resources of resourcemanager.miloapis.com/v1alpha1 that affect authorization:
// Organization, and Project, which belongs to an Organization. Their JSON equals that of Milo's CRDs.
//
// +kubebuilder:object:generate=true
// +groupName=resourcemanager.miloapis.com
package v1alpha1
