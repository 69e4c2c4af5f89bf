package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ActivationState says whether somebody may act.
// +kubebuilder:validation:Enum=Active;Inactive
type ActivationState string

// States. Who is inactive is granted nothing.
const (
	Active   ActivationState = "Active"
	Inactive ActivationState = "Inactive"
)

// UserSpec is who somebody is.
type UserSpec struct {
	// Email of the user.
	Email string `json:"email"`
	// +optional
	GivenName string `json:"givenName,omitempty"`
	// +optional
	FamilyName string `json:"familyName,omitempty"`
}

// UserStatus is what the identity provider says, and what was found. All is others' to write, but for Ready where nobody else says it.
type UserStatus struct {
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:default={{type:"Ready",status:"Unknown",reason:"Unknown",message:"Waiting for control plane to reconcile",lastTransitionTime:"1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// +kubebuilder:default=Active
	// +optional
	State ActivationState `json:"state,omitempty"`
	// RegistrationApproval is what older versions of the published schema have for platformAccess.
	// +kubebuilder:validation:Enum=Pending;Approved;Rejected
	// +optional
	RegistrationApproval string `json:"registrationApproval,omitempty"`
	// +kubebuilder:validation:Enum=Pending;Approved;Rejected;Suspended
	// +optional
	PlatformAccess string `json:"platformAccess,omitempty"`
	// +kubebuilder:validation:Enum=Verified;Unverified
	// +optional
	EmailVerification string `json:"emailVerification,omitempty"`
	// +kubebuilder:validation:Enum=github;google;passkey;email
	// +optional
	LastLoginProvider string `json:"lastLoginProvider,omitempty"`
	// +kubebuilder:validation:Format=uri
	// +optional
	AvatarURL string `json:"avatarUrl,omitempty"`
}

// User is a person. Requests name it in the uid of who asks.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.spec.email`
// +kubebuilder:selectablefield:JSONPath=`.status.registrationApproval`
// +kubebuilder:selectablefield:JSONPath=`.status.platformAccess`
// +kubebuilder:selectablefield:JSONPath=`.status.emailVerification`
// +kubebuilder:metadata:annotations="discovery.miloapis.com/parent-contexts=Platform,User"
// +kubebuilder:printcolumn:name="Email",type=string,JSONPath=`.spec.email`
// +kubebuilder:printcolumn:name="Given Name",type=string,JSONPath=`.spec.givenName`
// +kubebuilder:printcolumn:name="Family Name",type=string,JSONPath=`.spec.familyName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
type User struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec UserSpec `json:"spec,omitempty"`
	// +optional
	// +kubebuilder:default={}
	Status UserStatus `json:"status,omitempty"`
}

// GetConditions are those of its status.
func (in *User) GetConditions() []metav1.Condition { return in.Status.Conditions }

// UserList is a list of users.
//
// +kubebuilder:object:root=true
type UserList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []User `json:"items"`
}
