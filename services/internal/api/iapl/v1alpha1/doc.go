// Package v1alpha1 holds the custom resource of iapl.infratographer.com/v1alpha1:
// PolicyDocument, the part of a store's policy that one service registers. Its four lists
// are those of a policy file, key for key.
//
// +kubebuilder:object:generate=true
// +groupName=iapl.infratographer.com
package v1alpha1
