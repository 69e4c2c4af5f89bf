package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RoleReference names the Role of a binding.
type RoleReference struct {
	// Name of the Role.
	Name string `json:"name"`
	// Namespace of the Role; empty means that of the binding.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// Kinds of subjects.
const (
	UserKind           = "User"
	GroupKind          = "Group"
	ServiceAccountKind = "ServiceAccount"
)

// Subject is who gets the role. A Group without uid is no object: its name is compared with the
// groups that the authenticator gives, and holds a ':' so that it cannot be one's name.
//
// +kubebuilder:validation:XValidation:rule="(self.kind == 'Group' && self.name.contains(':')) || (has(self.uid) && size(self.uid) > 0)",message="UID is required for all subjects except system groups (groups with names starting with 'system:') and other groups of the authenticator (names with a ':')"
type Subject struct {
	// Kind is User, Group or ServiceAccount.
	// +kubebuilder:validation:Enum=User;Group;ServiceAccount
	Kind string `json:"kind"`
	// Name of the object, or of a group of the authenticator, such as "system:authenticated" or "oidc:sales-team".
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`
	// Namespace of a Group; with one, a ServiceAccount is that of the core API.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// UID of the object: another one of this name is somebody else.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	UID string `json:"uid,omitempty"`
}

// ResourceReference names one object.
type ResourceReference struct {
	// APIGroup of the kind.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Name of the object.
	Name string `json:"name"`
	// UID of the object: another one of this name is not meant.
	UID string `json:"uid"`
	// Namespace of the object, if it has one.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// ResourceKind names all objects of a kind.
type ResourceKind struct {
	// APIGroup of the kind.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind of the objects.
	Kind string `json:"kind"`
}

// ResourceSelector says what the role is given on: exactly one of the two.
//
// +kubebuilder:validation:XValidation:rule="has(self.resourceRef) != has(self.resourceKind)",message="exactly one of resourceRef or resourceKind must be specified, but not both"
type ResourceSelector struct {
	// ResourceRef is one object.
	// +optional
	ResourceRef *ResourceReference `json:"resourceRef,omitempty"`
	// ResourceKind is every object of a kind.
	// +optional
	ResourceKind *ResourceKind `json:"resourceKind,omitempty"`
}

// PolicyBindingSpec says who gets what on what. Only the subjects can be changed.
type PolicyBindingSpec struct {
	// RoleRef is the role.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="RoleRef is immutable and cannot be changed after creation"
	RoleRef RoleReference `json:"roleRef"`
	// Subjects get it.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10000
	Subjects []Subject `json:"subjects"`
	// ResourceSelector is what they get it on.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="ResourceSelector is immutable and cannot be changed after creation"
	ResourceSelector ResourceSelector `json:"resourceSelector"`
}

// PolicyBindingStatus is what was found.
type PolicyBindingStatus struct {
	// ObservedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:default={{type:"Ready",status:"Unknown",reason:"Unknown",message:"Waiting for control plane to reconcile",lastTransitionTime:"1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PolicyBinding gives subjects a role on one object, or on all of a kind.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="discovery.miloapis.com/parent-contexts=Organization,Platform"
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.roleRef.name`
// +kubebuilder:printcolumn:name="Resource Kind",type=string,JSONPath=`.spec.resourceSelector..kind`
// +kubebuilder:printcolumn:name="Resource Name",type=string,JSONPath=`.spec.resourceSelector.resourceRef.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PolicyBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Without it what is immutable could be dropped, and then be another.
	Spec PolicyBindingSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={}
	Status PolicyBindingStatus `json:"status,omitempty"`
}

// GetConditions are those of its status.
func (in *PolicyBinding) GetConditions() []metav1.Condition { return in.Status.Conditions }

// PolicyBindingList is a list of bindings.
//
// +kubebuilder:object:root=true
type PolicyBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PolicyBinding `json:"items"`
}
