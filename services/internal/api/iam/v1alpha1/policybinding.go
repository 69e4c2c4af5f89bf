package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RoleReference names the Role of a binding.
type RoleReference struct {
	// name is the name of the Role.
	Name string `json:"name"`
	// namespace is the namespace of the Role. The default is the namespace of the binding.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// Kinds of subjects.
const (
	UserKind           = "User"
	GroupKind          = "Group"
	ServiceAccountKind = "ServiceAccount"
)

// Subject is a user, a group or an account. A Group without uid is a group of the authenticator. Its name is compared
// with the groups of the request, and must contain a ':' so that no Group object has that name.
//
// +kubebuilder:validation:XValidation:rule="(self.kind == 'Group' && self.name.contains(':')) || (has(self.uid) && size(self.uid) > 0)",message="UID is required for all subjects except system groups (groups with names starting with 'system:') and other groups of the authenticator (names with a ':')"
type Subject struct {
	// kind is User, Group or ServiceAccount.
	// +kubebuilder:validation:Enum=User;Group;ServiceAccount
	Kind string `json:"kind"`
	// name is the name of the object, or of a group of the authenticator, such as "system:authenticated" or
	// "oidc:sales-team". The value has at most 512 characters.
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`
	// namespace is the namespace of a Group. A ServiceAccount with a namespace is an account of the core API; without
	// one it is an account of this API group. The value has at most 253 characters.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// uid is the UID of the object. Another object with the same name does not get the role. It is required, except for
	// groups of the authenticator. The value has at most 253 characters.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	UID string `json:"uid,omitempty"`
}

// ResourceReference names one object.
type ResourceReference struct {
	// apiGroup is the API group of the kind. Empty means the core group.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// kind is the kind of the object.
	Kind string `json:"kind"`
	// name is the name of the object.
	Name string `json:"name"`
	// uid is the UID of the object. The binding has no effect on another object with the same name.
	UID string `json:"uid"`
	// namespace is the namespace of the object, if its kind is namespaced.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// ResourceKind names all objects of a kind.
type ResourceKind struct {
	// apiGroup is the API group of the kind. Empty means the core group.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// kind is the kind of the objects.
	Kind string `json:"kind"`
}

// ResourceSelector selects one object or all objects of a kind: set exactly one of the two fields.
//
// +kubebuilder:validation:XValidation:rule="has(self.resourceRef) != has(self.resourceKind)",message="exactly one of resourceRef or resourceKind must be specified, but not both"
type ResourceSelector struct {
	// resourceRef selects one object.
	// +optional
	ResourceRef *ResourceReference `json:"resourceRef,omitempty"`
	// resourceKind selects all objects of a kind, in all namespaces.
	// +optional
	ResourceKind *ResourceKind `json:"resourceKind,omitempty"`
}

// PolicyBindingSpec names a role, its subjects and its targets.
type PolicyBindingSpec struct {
	// roleRef names the Role. It cannot change after creation. To set it you need the verb bind on that Role.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="RoleRef is immutable and cannot be changed after creation"
	RoleRef RoleReference `json:"roleRef"`
	// subjects get the role. There must be 1 to 10,000.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10000
	Subjects []Subject `json:"subjects"`
	// resourceSelector selects the objects on which the subjects get the role, and all objects below them. It cannot
	// change after creation.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="ResourceSelector is immutable and cannot be changed after creation"
	ResourceSelector ResourceSelector `json:"resourceSelector"`
}

// PolicyBindingStatus is the observed state of a PolicyBinding.
type PolicyBindingStatus struct {
	// observedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, which sums up the others, RoleValid, SubjectValid and TargetValid.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:default={{type:"Ready",status:"Unknown",reason:"Unknown",message:"Waiting for control plane to reconcile",lastTransitionTime:"1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PolicyBinding gives subjects a role on one object, or on all objects of a kind.
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

	// spec is the desired state. It is required. Only its subjects can change.
	Spec PolicyBindingSpec `json:"spec"`
	// status is the observed state.
	// +optional
	// +kubebuilder:default={}
	Status PolicyBindingStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (in *PolicyBinding) GetConditions() []metav1.Condition { return in.Status.Conditions }
