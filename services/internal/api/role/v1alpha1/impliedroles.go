package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InferenceRule makes one role imply another, in the namespace of the object.
//
// +kubebuilder:validation:XValidation:rule="self.parent_role != self.child_role || self.parent_kind != self.child_kind",message="a role cannot imply itself: choose another parent_role or child_role"
type InferenceRule struct {
	// parent_role is the role whose holders get the child role. The value has at most 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.contains('/') && !self.contains('%') && self != '.' && self != '..'",message="not a role name: it may not be '.' or '..' or hold '/' or '%'"
	ParentRole string `json:"parent_role"`
	// child_role is the role that these subjects get. It is bound even if it does not exist; ChildRoleFound is then
	// False. The value has at most 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.contains('/') && !self.contains('%') && self != '.' && self != '..'",message="not a role name: it may not be '.' or '..' or hold '/' or '%'"
	ChildRole string `json:"child_role"`
	// parent_kind is Role (the default) or ClusterRole.
	// +kubebuilder:validation:Enum=Role;ClusterRole
	// +kubebuilder:default=Role
	// +optional
	ParentKind string `json:"parent_kind,omitempty"`
	// child_kind is Role (the default) or ClusterRole.
	// +kubebuilder:validation:Enum=Role;ClusterRole
	// +kubebuilder:default=Role
	// +optional
	ChildKind string `json:"child_kind,omitempty"`
}

// ImpliedRolesSpec is the desired state of an ImpliedRoles.
type ImpliedRolesSpec struct {
	// inference_rule is the rule. To write it you must be able to bind each role that follows from it.
	InferenceRule InferenceRule `json:"inference_rule"`
}

// RuleInferences lists the roles that one role implies, by all rules of the namespace.
type RuleInferences struct {
	// parent_role is the parent role of the rule. A ClusterRole is written "ClusterRole/<name>".
	// +optional
	ParentRole string `json:"parent_role,omitempty"`
	// child_roles lists all roles that the parent role implies, sorted, at most 10,000. Each entry has at most 265
	// characters.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:MaxLength=265
	ChildRoles []string `json:"child_roles,omitempty"`
}

// ImpliedRolesStatus is the observed state of an ImpliedRoles.
type ImpliedRolesStatus struct {
	// inferences lists the roles that the parent role implies, by all rules of the namespace.
	// +optional
	Inferences RuleInferences `json:"inferences,omitempty"`
	// observedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, which sums up the others, Accepted, Acyclic, ChildRoleFound, Judged and Synced.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ImpliedRoles is one rule. A subject that has the parent role by a RoleBinding in this namespace also gets the child
// role there. No rule holds in all namespaces, and a ClusterRoleBinding implies nothing.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=impliedroles,singular=impliedrole,scope=Namespaced,shortName=ir,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Parent",type=string,JSONPath=`.spec.inference_rule.parent_role`
// +kubebuilder:printcolumn:name="Child",type=string,JSONPath=`.spec.inference_rule.child_role`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Acyclic",type=string,JSONPath=`.status.conditions[?(@.type=="Acyclic")].status`
// +kubebuilder:printcolumn:name="Parent Kind",type=string,JSONPath=`.spec.inference_rule.parent_kind`,priority=1
// +kubebuilder:printcolumn:name="Child Kind",type=string,JSONPath=`.spec.inference_rule.child_kind`,priority=1
// +kubebuilder:printcolumn:name="Implies",type=string,JSONPath=`.status.inferences.child_roles`,priority=1
// +kubebuilder:printcolumn:name="Judged",type=string,JSONPath=`.status.conditions[?(@.type=="Judged")].status`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ImpliedRoles struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	Spec ImpliedRolesSpec `json:"spec"`
	// status is the observed state.
	// +optional
	Status ImpliedRolesStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (in *ImpliedRoles) GetConditions() []metav1.Condition { return in.Status.Conditions }
