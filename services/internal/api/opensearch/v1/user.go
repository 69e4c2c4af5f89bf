package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpensearchUserSpec is the desired state of an OpensearchUser.
type OpensearchUserSpec struct {
	// opensearchCluster names the OpenSearchCluster, in the namespace of this object.
	OpensearchCluster corev1.LocalObjectReference `json:"opensearchCluster"`
	// passwordFrom names the Secret and the key with the password: UTF-8 text of at most 100 characters. A change of
	// the Secret changes the password.
	PasswordFrom corev1.SecretKeySelector `json:"passwordFrom"`
	// name is the name of the user in OpenSearch. The default is the name of this object. The value has at most 256
	// characters, and no ~.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^~]*$`
	// +kubebuilder:validation:XValidation:rule="!self.contains(':') && self == self.trim()",message="OpenSearch takes no user name with ':', nor with blanks around it"
	// +optional
	Name string `json:"name,omitempty"`
	// description is a text for people. The value has at most 1,024 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
	// opendistroSecurityRoles lists roles that the user has without a binding, at most 1,000. A role of OpenSearch
	// itself needs the verb bind. Each entry has at most 256 characters.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	OpendistroSecurityRoles []string `json:"opendistroSecurityRoles,omitempty"`
	// backendRoles lists backend roles of the user, at most 1,000. Bindings can refer to them. Each entry has at most
	// 256 characters.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	BackendRoles []string `json:"backendRoles,omitempty"`
	// attributes are values that roles can refer to, at most 200.
	// +kubebuilder:validation:MaxProperties=200
	// +optional
	Attributes map[string]string `json:"attributes,omitempty"`
}

// OpensearchUserStatus is the observed state of an OpensearchUser.
type OpensearchUserStatus struct {
	Common `json:",inline"`
}

// OpensearchUser is a user in an OpenSearch cluster. A Secret holds the password.
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

	// spec is the desired state.
	Spec OpensearchUserSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	Status OpensearchUserStatus `json:"status,omitempty"`
}

// Cluster implements [DeclaredObject].
func (in *OpensearchUser) Cluster() string { return in.Spec.OpensearchCluster.Name }

// OpenSearchName implements [DeclaredObject].
func (in *OpensearchUser) OpenSearchName() string { return openSearchName(in.Spec.Name, in.ObjectMeta) }

// CommonStatus implements [DeclaredObject].
func (in *OpensearchUser) CommonStatus() *Common { return &in.Status.Common }

// ExistedBefore implements [DeclaredObject]. It returns nil, because a user in OpenSearch has the UID of its owner.
func (in *OpensearchUser) ExistedBefore() *bool { return nil }
