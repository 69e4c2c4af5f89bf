package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpensearchUserRoleBindingSpec gives each of its subjects all of its roles.
type OpensearchUserRoleBindingSpec struct {
	// opensearchCluster names the OpenSearchCluster, in the namespace of this object.
	OpensearchCluster corev1.LocalObjectReference `json:"opensearchCluster"`
	// roles lists the names of roles in OpenSearch, at most 200. They need no object. A role of OpenSearch itself needs
	// the verb bind. Each entry has at most 256 characters, and no ~.
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[^~]*$`
	Roles []string `json:"roles"`
	// users lists the names of users in OpenSearch, at most 1,000. Each entry has at most 256 characters.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	Users []string `json:"users,omitempty"`
	// backendRoles lists backend roles, at most 1,000. Users with one of them get the roles. Each entry has at most 256
	// characters.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	BackendRoles []string `json:"backendRoles,omitempty"`
	// hosts lists host names or addresses, at most 1,000. Requests from one of them get the roles. Each entry has at
	// most 256 characters.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	Hosts []string `json:"hosts,omitempty"`
	// andBackendRoles lists backend roles, at most 100. Users with all of them get the roles. OpenSearch keeps one such
	// list for each role. Each entry has at most 256 characters.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	AndBackendRoles []string `json:"andBackendRoles,omitempty"`
}

// Provisioned lists the entries in one role's mapping that exist for a binding, or may exist. An entry that no binding
// records belongs to other software.
type Provisioned struct {
	// role is the name of the role in OpenSearch.
	Role string `json:"role"`
	// users lists the recorded users.
	// +optional
	// +listType=atomic
	Users []string `json:"users,omitempty"`
	// backendRoles lists the recorded backend roles.
	// +optional
	// +listType=atomic
	BackendRoles []string `json:"backendRoles,omitempty"`
	// hosts lists the recorded hosts.
	// +optional
	// +listType=atomic
	Hosts []string `json:"hosts,omitempty"`
	// andBackendRoles lists the recorded backend roles. A user must have all of them.
	// +optional
	// +listType=atomic
	AndBackendRoles []string `json:"andBackendRoles,omitempty"`
}

// OpensearchUserRoleBindingStatus is the observed state of an OpensearchUserRoleBinding.
type OpensearchUserRoleBindingStatus struct {
	Common `json:",inline"`
	// provisionedRoles is the record of the public operator. Entail reads it once, when it takes over.
	// +optional
	// +listType=atomic
	ProvisionedRoles []string `json:"provisionedRoles,omitempty"`
	// provisionedUsers lists the users of the record in provisionedRoles.
	// +optional
	// +listType=atomic
	ProvisionedUsers []string `json:"provisionedUsers,omitempty"`
	// provisionedBackendRoles lists the backend roles of the record in provisionedRoles.
	// +optional
	// +listType=atomic
	ProvisionedBackendRoles []string `json:"provisionedBackendRoles,omitempty"`
	// provisioned lists the entries that are in role mappings for this binding, or may be. opensearch-sync writes it
	// before it writes an entry.
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

	// spec is the desired state.
	Spec OpensearchUserRoleBindingSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	Status OpensearchUserRoleBindingStatus `json:"status,omitempty"`
}

// Cluster implements [DeclaredObject].
func (in *OpensearchUserRoleBinding) Cluster() string { return in.Spec.OpensearchCluster.Name }

// OpenSearchName implements [DeclaredObject]. It returns "", because bindings share the mappings of roles.
func (in *OpensearchUserRoleBinding) OpenSearchName() string { return "" }

// CommonStatus implements [DeclaredObject].
func (in *OpensearchUserRoleBinding) CommonStatus() *Common { return &in.Status.Common }

// ExistedBefore implements [DeclaredObject].
func (in *OpensearchUserRoleBinding) ExistedBefore() *bool { return nil }
