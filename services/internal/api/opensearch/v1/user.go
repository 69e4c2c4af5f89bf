package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpensearchUserSpec is what a person asks for.
type OpensearchUserSpec struct {
	// OpensearchCluster is the cluster that the user is in.
	OpensearchCluster corev1.LocalObjectReference `json:"opensearchCluster"`
	// PasswordFrom is the Secret that holds the password, and under which key.
	PasswordFrom corev1.SecretKeySelector `json:"passwordFrom"`
	// Name of the user in OpenSearch; that of the object unless set.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^~]*$`
	// +kubebuilder:validation:XValidation:rule="!self.contains(':') && self == self.trim()",message="OpenSearch takes no user name with ':', nor with blanks around it"
	// +optional
	Name string `json:"name,omitempty"`
	// Description is for people.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
	// OpendistroSecurityRoles are roles that the user has without any binding.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	OpendistroSecurityRoles []string `json:"opendistroSecurityRoles,omitempty"`
	// BackendRoles of the user, which bindings can refer to.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	BackendRoles []string `json:"backendRoles,omitempty"`
	// Attributes of the user, which roles can refer to.
	// +kubebuilder:validation:MaxProperties=200
	// +optional
	Attributes map[string]string `json:"attributes,omitempty"`
}

// OpensearchUserStatus is what opensearch-sync found and did.
type OpensearchUserStatus struct {
	Common `json:",inline"`
}

// OpensearchUser is a user in an OpenSearch cluster, with a password from a Secret.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=opensearchuser,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.opensearchCluster.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OpensearchUser struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OpensearchUserSpec `json:"spec,omitempty"`
	// +optional
	Status OpensearchUserStatus `json:"status,omitempty"`
}

// OpensearchUserList is a list of users.
//
// +kubebuilder:object:root=true
type OpensearchUserList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []OpensearchUser `json:"items"`
}

// Cluster implements [Declared].
func (in *OpensearchUser) Cluster() string { return in.Spec.OpensearchCluster.Name }

// Entity implements [Declared].
func (in *OpensearchUser) Entity() string { return entity(in.Spec.Name, in.ObjectMeta) }

// State implements [Declared].
func (in *OpensearchUser) State() *Common { return &in.Status.Common }

// Existing implements [Declared]: a user bears its owner's UID.
func (in *OpensearchUser) Existing() *bool { return nil }
