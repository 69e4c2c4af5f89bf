package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InferenceRule says that one role implies another, in the rule's namespace.
//
// +kubebuilder:validation:XValidation:rule="self.parent_role != self.child_role || self.parent_kind != self.child_kind",message="a role cannot imply itself: choose another parent_role or child_role"
type InferenceRule struct {
	// ParentRole is the role whose holders also get the child.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.contains('/') && !self.contains('%') && self != '.' && self != '..'",message="not a role name: it may not be '.' or '..' or hold '/' or '%'"
	ParentRole string `json:"parent_role"`
	// ChildRole is the role that they get.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.contains('/') && !self.contains('%') && self != '.' && self != '..'",message="not a role name: it may not be '.' or '..' or hold '/' or '%'"
	ChildRole string `json:"child_role"`
	// ParentKind is Role unless set.
	// +kubebuilder:validation:Enum=Role;ClusterRole
	// +kubebuilder:default=Role
	// +optional
	ParentKind string `json:"parent_kind,omitempty"`
	// ChildKind is Role unless set.
	// +kubebuilder:validation:Enum=Role;ClusterRole
	// +kubebuilder:default=Role
	// +optional
	ChildKind string `json:"child_kind,omitempty"`
}

// ImpliedRolesSpec is what a person asks for.
type ImpliedRolesSpec struct {
	// InferenceRule is the rule.
	InferenceRule InferenceRule `json:"inference_rule"`
}

// RuleInferences is all that one role implies, by all rules of the namespace.
type RuleInferences struct {
	// ParentRole is the rule's parent; a ClusterRole is "ClusterRole/<name>".
	// +optional
	ParentRole string `json:"parent_role,omitempty"`
	// ChildRoles are all roles that follow from it, sorted.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:MaxLength=265
	ChildRoles []string `json:"child_roles,omitempty"`
}

// ImpliedRolesStatus is what implied-role found and did.
type ImpliedRolesStatus struct {
	// +optional
	Inferences RuleInferences `json:"inferences,omitempty"`
	// ObservedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ImpliedRoles is one rule: whoever holds the parent role by a RoleBinding in this namespace also holds the child role in it.
// There are no rules for all namespaces, and nothing follows from a ClusterRoleBinding.
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

	Spec ImpliedRolesSpec `json:"spec"`
	// +optional
	Status ImpliedRolesStatus `json:"status,omitempty"`
}

// GetConditions are those of its status.
func (in *ImpliedRoles) GetConditions() []metav1.Condition { return in.Status.Conditions }

// ImpliedRolesList is a list of rules.
//
// +kubebuilder:object:root=true
type ImpliedRolesList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ImpliedRoles `json:"items"`
}
