package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ActivationState selects whether a subject may act.
// +kubebuilder:validation:Enum=Active;Inactive
type ActivationState string

// States of a subject. An inactive subject has no permissions.
const (
	Active   ActivationState = "Active"
	Inactive ActivationState = "Inactive"
)

// UserSpec identifies a person.
type UserSpec struct {
	// email is the address of the user.
	Email string `json:"email"`
	// givenName is the first name of the user.
	// +optional
	GivenName string `json:"givenName,omitempty"`
	// familyName is the last name of the user.
	// +optional
	FamilyName string `json:"familyName,omitempty"`
}

// UserStatus is the observed state of a User. Other software writes it. Entail writes Ready if no other software
// does.
type UserStatus struct {
	// conditions has Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:default={{type:"Ready",status:"Unknown",reason:"Unknown",message:"Waiting for control plane to reconcile",lastTransitionTime:"1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// state is Active (the default) or Inactive. An inactive user has no permissions, not even by groups.
	// +kubebuilder:default=Active
	// +optional
	State ActivationState `json:"state,omitempty"`
	// registrationApproval is the name of platformAccess in older versions of Milo's schema.
	// +kubebuilder:validation:Enum=Pending;Approved;Rejected
	// +optional
	RegistrationApproval string `json:"registrationApproval,omitempty"`
	// platformAccess is Pending, Approved, Rejected or Suspended. Entail does not read it.
	// +kubebuilder:validation:Enum=Pending;Approved;Rejected;Suspended
	// +optional
	PlatformAccess string `json:"platformAccess,omitempty"`
	// emailVerification is Verified or Unverified. Entail does not read it.
	// +kubebuilder:validation:Enum=Verified;Unverified
	// +optional
	EmailVerification string `json:"emailVerification,omitempty"`
	// lastLoginProvider is github, google, passkey or email. Entail does not read it.
	// +kubebuilder:validation:Enum=github;google;passkey;email
	// +optional
	LastLoginProvider string `json:"lastLoginProvider,omitempty"`
	// avatarUrl is the address of a picture. Entail does not read it.
	// +kubebuilder:validation:Format=uri
	// +optional
	AvatarURL string `json:"avatarUrl,omitempty"`
}

// User is a person. Requests identify it by its UID.
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

	// spec is the desired state.
	// +optional
	Spec UserSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	// +kubebuilder:default={}
	Status UserStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (in *User) GetConditions() []metav1.Condition { return in.Status.Conditions }
