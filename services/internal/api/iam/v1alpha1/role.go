package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ScopedRoleReference names a Role.
type ScopedRoleReference struct {
	// Name of the Role.
	Name string `json:"name"`
	// Namespace of the Role; empty means that of the role that inherits it.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// RoleSpec is what a role gives.
type RoleSpec struct {
	// IncludedPermissions are such as "compute.miloapis.com/workloads.get".
	// +optional
	IncludedPermissions []string `json:"includedPermissions,omitempty"`
	// LaunchStage is Early Access, Alpha, Beta, Stable or Deprecated.
	LaunchStage string `json:"launchStage"`
	// InheritedRoles give all that they have.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	// +listType=map
	// +listMapKey=name
	InheritedRoles []ScopedRoleReference `json:"inheritedRoles,omitempty"`
}

// RoleStatus is what was found.
type RoleStatus struct {
	// Parent is part of the published schema; nothing writes it.
	// +optional
	Parent string `json:"parent,omitempty"`
	// EffectivePermissions are all that the role gives, those of inherited roles included, sorted; of very many the first.
	// +optional
	EffectivePermissions []string `json:"effectivePermissions,omitempty"`
	// ObservedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:default={{type:"Ready",status:"Unknown",reason:"Unknown",message:"Waiting for control plane to reconcile",lastTransitionTime:"1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Role is a set of permissions that a PolicyBinding gives.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="discovery.miloapis.com/parent-contexts=Organization,Platform"
// +kubebuilder:printcolumn:name="Display Name",type=string,JSONPath=`.metadata.annotations.kubernetes\.io/display-name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Launch Stage",type=string,JSONPath=`.spec.launchStage`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Role struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec RoleSpec `json:"spec,omitempty"`
	// +optional
	// +kubebuilder:default={}
	Status RoleStatus `json:"status,omitempty"`
}

// GetConditions are those of its status.
func (in *Role) GetConditions() []metav1.Condition { return in.Status.Conditions }

// RoleList is a list of roles.
//
// +kubebuilder:object:root=true
type RoleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Role `json:"items"`
}
