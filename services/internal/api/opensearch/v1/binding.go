package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpensearchUserRoleBindingSpec is what a person asks for: all of these roles to each of these subjects.
type OpensearchUserRoleBindingSpec struct {
	// OpensearchCluster is the cluster that the roles are in.
	OpensearchCluster corev1.LocalObjectReference `json:"opensearchCluster"`
	// Roles by their names in OpenSearch, whether objects declare them or not.
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[^~]*$`
	Roles []string `json:"roles"`
	// Users by their names in OpenSearch.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	Users []string `json:"users,omitempty"`
	// BackendRoles of users: whoever has one of them has the roles.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	BackendRoles []string `json:"backendRoles,omitempty"`
	// Hosts: whoever comes from one of them has the roles.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	Hosts []string `json:"hosts,omitempty"`
	// AndBackendRoles: whoever has all of them has the roles. A role has one such list at most.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	AndBackendRoles []string `json:"andBackendRoles,omitempty"`
}

// Provisioned are the entries of one role's mapping that are, or are about to be, there for a binding. What is in no
// binding's record is somebody else's for ever.
type Provisioned struct {
	Role string `json:"role"`
	// +optional
	// +listType=atomic
	Users []string `json:"users,omitempty"`
	// +optional
	// +listType=atomic
	BackendRoles []string `json:"backendRoles,omitempty"`
	// +optional
	// +listType=atomic
	Hosts []string `json:"hosts,omitempty"`
	// +optional
	// +listType=atomic
	AndBackendRoles []string `json:"andBackendRoles,omitempty"`
}

// OpensearchUserRoleBindingStatus is what opensearch-sync found and did.
type OpensearchUserRoleBindingStatus struct {
	Common `json:",inline"`
	// ProvisionedRoles is the public operator's record, read once when it hands over.
	// +optional
	// +listType=atomic
	ProvisionedRoles []string `json:"provisionedRoles,omitempty"`
	// ProvisionedUsers belongs to provisionedRoles.
	// +optional
	// +listType=atomic
	ProvisionedUsers []string `json:"provisionedUsers,omitempty"`
	// ProvisionedBackendRoles belongs to provisionedRoles.
	// +optional
	// +listType=atomic
	ProvisionedBackendRoles []string `json:"provisionedBackendRoles,omitempty"`
	// Provisioned is the record of what is there for this binding.
	// +optional
	// +listType=map
	// +listMapKey=role
	Provisioned []Provisioned `json:"provisioned,omitempty"`
}

// OpensearchUserRoleBinding gives roles to users, backend roles and hosts in an OpenSearch cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=opensearchuserrolebinding,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.opensearchCluster.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Roles",type=string,JSONPath=`.spec.roles`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OpensearchUserRoleBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OpensearchUserRoleBindingSpec `json:"spec,omitempty"`
	// +optional
	Status OpensearchUserRoleBindingStatus `json:"status,omitempty"`
}

// OpensearchUserRoleBindingList is a list of bindings.
//
// +kubebuilder:object:root=true
type OpensearchUserRoleBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []OpensearchUserRoleBinding `json:"items"`
}

// Cluster implements [Declared].
func (in *OpensearchUserRoleBinding) Cluster() string { return in.Spec.OpensearchCluster.Name }

// Entity implements [Declared]: bindings share the mappings of roles.
func (in *OpensearchUserRoleBinding) Entity() string { return "" }

// State implements [Declared].
func (in *OpensearchUserRoleBinding) State() *Common { return &in.Status.Common }

// Existing implements [Declared].
func (in *OpensearchUserRoleBinding) Existing() *bool { return nil }
