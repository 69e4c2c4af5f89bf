package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ServiceAccountSpec says whether a program may act.
type ServiceAccountSpec struct {
	// +kubebuilder:default=Active
	// +optional
	State ActivationState `json:"state,omitempty"`
}

// ServiceAccountStatus is what the identity provider says, and what was found.
type ServiceAccountStatus struct {
	// +optional
	Email string `json:"email,omitempty"`
	// State is the one that the identity provider knows.
	// +optional
	State ActivationState `json:"state,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ServiceAccount is a program. Requests name it by its UID.
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

	// +optional
	// +kubebuilder:default={}
	Spec ServiceAccountSpec `json:"spec,omitempty"`
	// +optional
	Status ServiceAccountStatus `json:"status,omitempty"`
}

// GetConditions are those of its status.
func (in *ServiceAccount) GetConditions() []metav1.Condition { return in.Status.Conditions }

// ServiceAccountList is a list of programs.
//
// +kubebuilder:object:root=true
type ServiceAccountList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ServiceAccount `json:"items"`
}
