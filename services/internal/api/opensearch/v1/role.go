package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IndexPermission allows actions on some indexes.
type IndexPermission struct {
	// indexPatterns lists names of indexes, with wildcards or as /regular expressions/, at most 1,000. Each entry has
	// at most 1,024 characters.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	IndexPatterns []string `json:"indexPatterns,omitempty"`
	// dls is a query in JSON. Only documents that match are visible. Empty means all documents. The value has at most
	// 65,536 characters.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	DLS string `json:"dls,omitempty"`
	// fls lists the visible fields, or with ~ or ! before the name the hidden ones, at most 1,000. Empty means all
	// fields. Each entry has at most 1,024 characters.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	FLS []string `json:"fls,omitempty"`
	// allowedActions lists actions and action groups, at most 1,000. Each group must exist in OpenSearch. Each entry
	// has at most 1,024 characters.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	AllowedActions []string `json:"allowedActions,omitempty"`
	// maskedFields lists fields that are shown as hashes, at most 1,000. Each entry has at most 1,024 characters.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	MaskedFields []string `json:"maskedFields,omitempty"`
}

// TenantPermission allows actions in some tenants.
type TenantPermission struct {
	// tenantPatterns lists names of tenants, with wildcards, at most 1,000. Each entry has at most 1,024 characters.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	TenantPatterns []string `json:"tenantPatterns,omitempty"`
	// allowedActions lists actions and action groups, at most 1,000. Each entry has at most 1,024 characters.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	AllowedActions []string `json:"allowedActions,omitempty"`
}

// OpensearchRoleSpec is the desired state of an OpensearchRole.
type OpensearchRoleSpec struct {
	// opensearchCluster names the OpenSearchCluster, in the namespace of this object.
	OpensearchCluster corev1.LocalObjectReference `json:"opensearchCluster"`
	// name is the name of the role in OpenSearch. The default is the name of this object. The value has at most 256
	// characters, and no ~.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^~]*$`
	// +optional
	Name string `json:"name,omitempty"`
	// description is a text for people. The value has at most 1,024 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
	// clusterPermissions lists actions on the cluster and action groups, at most 1,000. Each entry has at most 1,024
	// characters.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	ClusterPermissions []string `json:"clusterPermissions,omitempty"`
	// indexPermissions lists what the role allows on indexes, at most 1,000 entries.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	IndexPermissions []IndexPermission `json:"indexPermissions,omitempty"`
	// tenantPermissions lists what the role allows in tenants, at most 1,000 entries.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	TenantPermissions []TenantPermission `json:"tenantPermissions,omitempty"`
}

// OpensearchRoleStatus is the observed state of an OpensearchRole.
type OpensearchRoleStatus struct {
	Common `json:",inline"`
	// existingRole reports that OpenSearch had a role of this name before this object. Entail does not change it.
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

	// spec is the desired state.
	Spec OpensearchRoleSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	Status OpensearchRoleStatus `json:"status,omitempty"`
}

// Cluster implements [DeclaredObject].
func (in *OpensearchRole) Cluster() string { return in.Spec.OpensearchCluster.Name }

// OpenSearchName implements [DeclaredObject].
func (in *OpensearchRole) OpenSearchName() string { return openSearchName(in.Spec.Name, in.ObjectMeta) }

// CommonStatus implements [DeclaredObject].
func (in *OpensearchRole) CommonStatus() *Common { return &in.Status.Common }

// ExistedBefore implements [DeclaredObject].
func (in *OpensearchRole) ExistedBefore() *bool { return in.Status.ExistingRole }
