package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GroupStatus is the observed state of a Group.
type GroupStatus struct {
	// conditions has Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Group is a set of users. GroupMemberships name its members.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="discovery.miloapis.com/parent-contexts=Organization"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Group struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is the observed state.
	// +optional
	Status GroupStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (in *Group) GetConditions() []metav1.Condition { return in.Status.Conditions }

// UserReference names a User.
type UserReference struct {
	// name is the name of the User.
	Name string `json:"name"`
}

// GroupReference names a Group.
type GroupReference struct {
	// name is the name of the Group.
	Name string `json:"name"`
	// namespace is the namespace of the Group.
	Namespace string `json:"namespace"`
}

// GroupMembershipSpec names a user and a group.
type GroupMembershipSpec struct {
	// userRef names the User that becomes a member.
	UserRef UserReference `json:"userRef"`
	// groupRef names the Group. To set it you need the verb bind on that Group.
	GroupRef GroupReference `json:"groupRef"`
}

// Member identifies the User of a membership.
type Member struct {
	// name is the name of the User.
	Name string `json:"name"`
	// uid is the UID of the User.
	UID string `json:"uid"`
}

// GroupMembershipStatus is the observed state of a GroupMembership.
type GroupMembershipStatus struct {
	// user is the User that the membership found first. If that User is deleted, another User of the same name does not
	// become a member.
	// +optional
	User *Member `json:"user,omitempty"`
	// conditions are Ready, which sums up the others, UserRefValid and GroupRefValid.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GroupMembership makes a user a member of a group.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.spec.groupRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.userRef.name`
// +kubebuilder:metadata:annotations="discovery.miloapis.com/parent-contexts=Organization"
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.spec.userRef.name`
// +kubebuilder:printcolumn:name="Group",type=string,JSONPath=`.spec.groupRef.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GroupMembership struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec GroupMembershipSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	Status GroupMembershipStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (in *GroupMembership) GetConditions() []metav1.Condition { return in.Status.Conditions }
