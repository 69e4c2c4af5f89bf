package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpensearchActionGroupSpec is the desired state of an OpensearchActionGroup.
type OpensearchActionGroupSpec struct {
	// opensearchCluster names the OpenSearchCluster, in the namespace of this object.
	OpensearchCluster corev1.LocalObjectReference `json:"opensearchCluster"`
	// name is the name of the action group in OpenSearch. The default is the name of this object. The value has at most
	// 256 characters, and no ~.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^~]*$`
	// +optional
	Name string `json:"name,omitempty"`
	// description is a text for people. The value has at most 1,024 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
	// allowedActions lists actions and other action groups, at most 1,000. Each group must exist in OpenSearch. Each
	// entry has at most 1,024 characters.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	AllowedActions []string `json:"allowedActions"`
	// type is cluster or index.
	// +optional
	Type string `json:"type,omitempty"`
}

// OpensearchActionGroupStatus is the observed state of an OpensearchActionGroup.
type OpensearchActionGroupStatus struct {
	Common `json:",inline"`
	// existingActionGroup reports that OpenSearch had an action group of this name before this object. Entail does not
	// change it.
	// +optional
	ExistingActionGroup *bool `json:"existingActionGroup,omitempty"`
}

// OpensearchActionGroup is a named set of actions in an OpenSearch cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=opensearchactiongroup,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.opensearchCluster.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OpensearchActionGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	Spec OpensearchActionGroupSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	Status OpensearchActionGroupStatus `json:"status,omitempty"`
}

// Cluster implements [DeclaredObject].
func (in *OpensearchActionGroup) Cluster() string { return in.Spec.OpensearchCluster.Name }

// OpenSearchName implements [DeclaredObject].
func (in *OpensearchActionGroup) OpenSearchName() string {
	return openSearchName(in.Spec.Name, in.ObjectMeta)
}

// CommonStatus implements [DeclaredObject].
func (in *OpensearchActionGroup) CommonStatus() *Common { return &in.Status.Common }

// ExistedBefore implements [DeclaredObject].
func (in *OpensearchActionGroup) ExistedBefore() *bool { return in.Status.ExistingActionGroup }
