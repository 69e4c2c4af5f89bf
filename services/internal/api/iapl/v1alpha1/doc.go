// Package v1alpha1 holds the custom resource of iapl.infratographer.com/v1alpha1: PolicyDocument, the part of a
// store's policy that one service registers. Its four lists have the same keys as a policy file.
//
// +kubebuilder:object:generate=true
// +groupName=iapl.infratographer.com
package v1alpha1
