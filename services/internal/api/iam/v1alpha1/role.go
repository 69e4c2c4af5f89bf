package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ScopedRoleReference names a Role.
type ScopedRoleReference struct {
	// name is the name of the Role.
	Name string `json:"name"`
	// namespace is the namespace of the Role. The default is the namespace of the inheriting Role.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// RoleSpec lists the permissions of a role.
type RoleSpec struct {
	// includedPermissions lists permissions, such as "compute.miloapis.com/workloads.get". To add one you need the verb
	// escalate on this Role. A permission that no ProtectedResource registers gives nothing.
	// +optional
	IncludedPermissions []string `json:"includedPermissions,omitempty"`
	// launchStage is Early Access, Alpha, Beta, Stable or Deprecated. It has no effect.
	LaunchStage string `json:"launchStage"`
	// inheritedRoles lists Roles whose permissions this Role also gives, at most 100. To add one you need the verb bind
	// on it.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	// +listType=map
	// +listMapKey=name
	InheritedRoles []ScopedRoleReference `json:"inheritedRoles,omitempty"`
}

// RoleStatus is the observed state of a Role.
type RoleStatus struct {
	// parent has no effect. It is part of Milo's schema.
	// +optional
	Parent string `json:"parent,omitempty"`
	// effectivePermissions lists all permissions of the role and of its inherited roles, sorted. The list is cut if it
	// is very long.
	// +optional
	EffectivePermissions []string `json:"effectivePermissions,omitempty"`
	// observedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions holds the conditions Ready and PermissionsValid.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:default={{type:"Ready",status:"Unknown",reason:"Unknown",message:"Waiting for control plane to reconcile",lastTransitionTime:"1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Role is a set of permissions that PolicyBindings give.
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

	// spec is the desired state.
	// +optional
	Spec RoleSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	// +kubebuilder:default={}
	Status RoleStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (in *Role) GetConditions() []metav1.Condition { return in.Status.Conditions }
