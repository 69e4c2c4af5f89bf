// Package v1alpha1 holds those custom resources of resourcemanager.miloapis.com/v1alpha1 that
// authorization depends on: Organization, and Project, which belongs to one. Their JSON is that
// of the CRDs that Milo publishes.
//
// +kubebuilder:object:generate=true
// +groupName=resourcemanager.miloapis.com
package v1alpha1
