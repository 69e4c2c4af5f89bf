package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpensearchTenantSpec is the desired state of an OpensearchTenant.
type OpensearchTenantSpec struct {
	// opensearchCluster names the OpenSearchCluster, in the namespace of this object.
	OpensearchCluster corev1.LocalObjectReference `json:"opensearchCluster"`
	// name is the name of the tenant in OpenSearch. The default is the name of this object. The value has at most 256
	// characters, and no ~.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^~]*$`
	// +optional
	Name string `json:"name,omitempty"`
	// description is a text for people. The value has at most 1,024 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
}

// OpensearchTenantStatus is the observed state of an OpensearchTenant.
type OpensearchTenantStatus struct {
	Common `json:",inline"`
	// existingTenant reports that OpenSearch had a tenant of this name before this object. Entail does not change it.
	// +optional
	ExistingTenant *bool `json:"existingTenant,omitempty"`
}

// OpensearchTenant is a space for saved objects of OpenSearch Dashboards.
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

	// spec is the desired state.
	Spec OpensearchTenantSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	Status OpensearchTenantStatus `json:"status,omitempty"`
}

// Cluster implements [DeclaredObject].
func (in *OpensearchTenant) Cluster() string { return in.Spec.OpensearchCluster.Name }

// OpenSearchName implements [DeclaredObject].
func (in *OpensearchTenant) OpenSearchName() string {
	return openSearchName(in.Spec.Name, in.ObjectMeta)
}

// CommonStatus implements [DeclaredObject].
func (in *OpensearchTenant) CommonStatus() *Common { return &in.Status.Common }

// ExistedBefore implements [DeclaredObject].
func (in *OpensearchTenant) ExistedBefore() *bool { return in.Status.ExistingTenant }
