package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ServiceReference names the API group that a kind belongs to.
type ServiceReference struct {
	// name is the API group. The core group is "core.miloapis.com".
	Name string `json:"name"`
}

// ParentResourceRef names a kind whose objects can be parents.
type ParentResourceRef struct {
	// apiGroup is the API group of the kind. Empty means the core group.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// kind is the kind of the parents.
	Kind string `json:"kind"`
}

// SubresourceDefinition lists the permissions of one subresource.
type SubresourceDefinition struct {
	// name is the name of the subresource, such as "status". The value has at most 63 characters.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// permissions are the verbs on the subresource. There must be at least one.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:Pattern=`^[a-z][a-z0-9-]*$`
	Permissions []string `json:"permissions"`
}

// SubresourceMode selects the permission for subresources that are not listed.
// +kubebuilder:validation:Enum=Separate;Inherit
type SubresourceMode string

// Subresource modes.
const (
	// SubresourcesSeparate requires a permission for the subresource itself. No role can give this permission, so
	// access is refused.
	SubresourcesSeparate SubresourceMode = "Separate"
	// SubresourcesInherit requires the permission of the resource itself.
	SubresourcesInherit SubresourceMode = "Inherit"
)

// ProtectedResourceSpec describes a kind, its permissions and its parents.
type ProtectedResourceSpec struct {
	// serviceRef names the API group of the kind.
	ServiceRef ServiceReference `json:"serviceRef"`
	// kind is the kind of the objects, such as "Workload".
	Kind string `json:"kind"`
	// singular is the name of one object, such as "workload".
	Singular string `json:"singular"`
	// plural is the name of the resource in URLs, such as "workloads".
	Plural string `json:"plural"`
	// parentResources lists the kinds whose objects can be parents. Subjects with a permission on the parent have it on
	// the child.
	// +optional
	ParentResources []ParentResourceRef `json:"parentResources,omitempty"`
	// permissions lists the verbs that roles can give, such as "get", or "status.update" for a subresource.
	Permissions []string `json:"permissions"`
	// subresources lists subresources with their own permissions.
	// +optional
	// +listType=map
	// +listMapKey=name
	Subresources []SubresourceDefinition `json:"subresources,omitempty"`
	// unlistedSubresources selects the permission for all other subresources. Separate (the default) requires a
	// permission of its own, which no role can give. Inherit requires the permission on the object.
	// +optional
	UnlistedSubresources SubresourceMode `json:"unlistedSubresources,omitempty"`
}

// Registration is the part of a ProtectedResource that is in the IAM model.
type Registration struct {
	// group is the API group of the registered kind. The core group is "core.miloapis.com".
	Group string `json:"group"`
	// kind is the registered kind.
	Kind string `json:"kind"`
	// plural is the registered name of the resource.
	Plural string `json:"plural"`
	// permissions lists the permissions in force.
	// +optional
	// +listType=atomic
	Permissions []string `json:"permissions,omitempty"`
	// parents lists the kinds of parents in force, as group/Kind.
	// +optional
	// +listType=atomic
	Parents []string `json:"parents,omitempty"`
	// generation is the generation of the object that introduced these values.
	Generation int64 `json:"generation"`
}

// ProtectedResourceStatus is the observed state of a ProtectedResource. It holds a record that only services may
// change.
type ProtectedResourceStatus struct {
	// observedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// registered lists the registered entries of this object. No other ProtectedResource can register them. An edit
	// that adds another entry is a new claim.
	// +optional
	Registered *Registration `json:"registered,omitempty"`
	// conditions are Ready, which sums up the others, Registered and Observed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:default={{type:"Ready",status:"Unknown",reason:"Unknown",message:"Waiting for control plane to reconcile",lastTransitionTime:"1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProtectedResource registers a kind, so that roles can give permissions on its objects.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="discovery.miloapis.com/parent-contexts=Platform"
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProtectedResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec ProtectedResourceSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	// +kubebuilder:default={}
	Status ProtectedResourceStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (in *ProtectedResource) GetConditions() []metav1.Condition { return in.Status.Conditions }
