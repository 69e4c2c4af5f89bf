package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IndexPermission says what is allowed with some indexes.
type IndexPermission struct {
	// IndexPatterns are names of indexes, with wildcards.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	IndexPatterns []string `json:"indexPatterns,omitempty"`
	// DLS is a query: only documents that it finds are seen.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	DLS string `json:"dls,omitempty"`
	// FLS are the fields that are seen, or with ~ or ! before them those that are not.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	FLS []string `json:"fls,omitempty"`
	// AllowedActions are actions, or groups of them.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	AllowedActions []string `json:"allowedActions,omitempty"`
	// MaskedFields are seen as hashes.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	MaskedFields []string `json:"maskedFields,omitempty"`
}

// TenantPermission says what is allowed in some tenants.
type TenantPermission struct {
	// TenantPatterns are names of tenants, with wildcards.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	TenantPatterns []string `json:"tenantPatterns,omitempty"`
	// AllowedActions are actions, or groups of them.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	AllowedActions []string `json:"allowedActions,omitempty"`
}

// OpensearchRoleSpec is what a person asks for.
type OpensearchRoleSpec struct {
	// OpensearchCluster is the cluster that the role is in.
	OpensearchCluster corev1.LocalObjectReference `json:"opensearchCluster"`
	// Name of the role in OpenSearch; that of the object unless set.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^~]*$`
	// +optional
	Name string `json:"name,omitempty"`
	// Description is for people.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
	// ClusterPermissions are actions on the cluster, or groups of them.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	ClusterPermissions []string `json:"clusterPermissions,omitempty"`
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	IndexPermissions []IndexPermission `json:"indexPermissions,omitempty"`
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	TenantPermissions []TenantPermission `json:"tenantPermissions,omitempty"`
}

// OpensearchRoleStatus is what opensearch-sync found and did.
type OpensearchRoleStatus struct {
	Common `json:",inline"`
	// ExistingRole means that OpenSearch has a role of the name that is not this object's: it is left alone.
	// +optional
	ExistingRole *bool `json:"existingRole,omitempty"`
}

// OpensearchRole is a role in an OpenSearch cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=opensearchrole,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.opensearchCluster.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OpensearchRole struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OpensearchRoleSpec `json:"spec,omitempty"`
	// +optional
	Status OpensearchRoleStatus `json:"status,omitempty"`
}

// OpensearchRoleList is a list of roles.
//
// +kubebuilder:object:root=true
type OpensearchRoleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []OpensearchRole `json:"items"`
}

// Cluster implements [Declared].
func (in *OpensearchRole) Cluster() string { return in.Spec.OpensearchCluster.Name }

// Entity implements [Declared].
func (in *OpensearchRole) Entity() string { return entity(in.Spec.Name, in.ObjectMeta) }

// State implements [Declared].
func (in *OpensearchRole) State() *Common { return &in.Status.Common }

// Existing implements [Declared].
func (in *OpensearchRole) Existing() *bool { return in.Status.ExistingRole }
