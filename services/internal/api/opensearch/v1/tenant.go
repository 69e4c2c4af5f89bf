package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpensearchTenantSpec is what a person asks for.
type OpensearchTenantSpec struct {
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
}

// OpensearchTenantStatus is what opensearch-sync found and did.
type OpensearchTenantStatus struct {
	Common `json:",inline"`
	// ExistingTenant means that OpenSearch has one of the name that is not this object's: it is left alone.
	// +optional
	ExistingTenant *bool `json:"existingTenant,omitempty"`
}

// OpensearchTenant is a space for saved objects of dashboards in an OpenSearch cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=opensearchtenant,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.opensearchCluster.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OpensearchTenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OpensearchTenantSpec `json:"spec,omitempty"`
	// +optional
	Status OpensearchTenantStatus `json:"status,omitempty"`
}

// OpensearchTenantList is a list of them.
//
// +kubebuilder:object:root=true
type OpensearchTenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []OpensearchTenant `json:"items"`
}

// Cluster implements [Declared].
func (in *OpensearchTenant) Cluster() string { return in.Spec.OpensearchCluster.Name }

// Entity implements [Declared].
func (in *OpensearchTenant) Entity() string { return entity(in.Spec.Name, in.ObjectMeta) }

// State implements [Declared].
func (in *OpensearchTenant) State() *Common { return &in.Status.Common }

// Existing implements [Declared].
func (in *OpensearchTenant) Existing() *bool { return in.Status.ExistingTenant }
