package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpensearchActionGroupSpec is what a person asks for.
type OpensearchActionGroupSpec struct {
	// OpensearchCluster is the cluster that it is in.
	OpensearchCluster corev1.LocalObjectReference `json:"opensearchCluster"`
	// Name in OpenSearch; that of the object unless set.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^~]*$`
	// +optional
	Name string `json:"name,omitempty"`
	// Description is for people.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
	// AllowedActions are the actions, or other groups, that the group stands for.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	AllowedActions []string `json:"allowedActions"`
	// Type is cluster or index.
	// +optional
	Type string `json:"type,omitempty"`
}

// OpensearchActionGroupStatus is what opensearch-sync found and did.
type OpensearchActionGroupStatus struct {
	Common `json:",inline"`
	// ExistingActionGroup means that OpenSearch has one of the name that is not this object's: it is left alone.
	// +optional
	ExistingActionGroup *bool `json:"existingActionGroup,omitempty"`
}

// OpensearchActionGroup is a name for several actions in an OpenSearch cluster.
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

	Spec OpensearchActionGroupSpec `json:"spec,omitempty"`
	// +optional
	Status OpensearchActionGroupStatus `json:"status,omitempty"`
}

// OpensearchActionGroupList is a list of them.
//
// +kubebuilder:object:root=true
type OpensearchActionGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []OpensearchActionGroup `json:"items"`
}

// Cluster implements [Declared].
func (in *OpensearchActionGroup) Cluster() string { return in.Spec.OpensearchCluster.Name }

// Entity implements [Declared].
func (in *OpensearchActionGroup) Entity() string { return entity(in.Spec.Name, in.ObjectMeta) }

// State implements [Declared].
func (in *OpensearchActionGroup) State() *Common { return &in.Status.Common }

// Existing implements [Declared].
func (in *OpensearchActionGroup) Existing() *bool { return in.Status.ExistingActionGroup }
