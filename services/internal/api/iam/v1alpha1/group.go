package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GroupStatus is what was found.
type GroupStatus struct {
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Group is a set of users: whose GroupMemberships lead to it.
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

	// +optional
	Status GroupStatus `json:"status,omitempty"`
}

// GetConditions are those of its status.
func (in *Group) GetConditions() []metav1.Condition { return in.Status.Conditions }

// GroupList is a list of groups.
//
// +kubebuilder:object:root=true
type GroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Group `json:"items"`
}

// UserReference names a User.
type UserReference struct {
	// Name of the User.
	Name string `json:"name"`
}

// GroupReference names a Group.
type GroupReference struct {
	// Name of the Group.
	Name string `json:"name"`
	// Namespace of the Group.
	Namespace string `json:"namespace"`
}

// GroupMembershipSpec says who belongs to what.
type GroupMembershipSpec struct {
	// UserRef is the member.
	UserRef UserReference `json:"userRef"`
	// GroupRef is the group.
	GroupRef GroupReference `json:"groupRef"`
}

// Member is a User as a membership found it.
type Member struct {
	// Name is the userRef that this was found by.
	Name string `json:"name"`
	// UID of the User.
	UID string `json:"uid"`
}

// GroupMembershipStatus is what was found.
type GroupMembershipStatus struct {
	// User is whom the membership was first for. Another User of that name does not inherit it.
	// +optional
	User *Member `json:"user,omitempty"`
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

	// +optional
	Spec GroupMembershipSpec `json:"spec,omitempty"`
	// +optional
	Status GroupMembershipStatus `json:"status,omitempty"`
}

// GetConditions are those of its status.
func (in *GroupMembership) GetConditions() []metav1.Condition { return in.Status.Conditions }

// GroupMembershipList is a list of memberships.
//
// +kubebuilder:object:root=true
type GroupMembershipList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GroupMembership `json:"items"`
}
