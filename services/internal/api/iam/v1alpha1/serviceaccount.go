package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ServiceAccountSpec selects whether an account may act.
type ServiceAccountSpec struct {
	// state is Active (the default) or Inactive. An inactive account has no permissions.
	// +kubebuilder:default=Active
	// +optional
	State ActivationState `json:"state,omitempty"`
}

// ServiceAccountStatus is the observed state of a ServiceAccount.
type ServiceAccountStatus struct {
	// email is the address of the account at the identity provider.
	// +optional
	Email string `json:"email,omitempty"`
	// state is the state of the account at the identity provider.
	// +optional
	State ActivationState `json:"state,omitempty"`
	// conditions has Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ServiceAccount is an identity for a program. Requests identify it by its UID.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="discovery.miloapis.com/parent-contexts=Project"
// +kubebuilder:printcolumn:name="Email",type=string,JSONPath=`.status.email`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ServiceAccount struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	// +kubebuilder:default={}
	Spec ServiceAccountSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	Status ServiceAccountStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (in *ServiceAccount) GetConditions() []metav1.Condition { return in.Status.Conditions }
