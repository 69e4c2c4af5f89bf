package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ServiceReference names the API group that a kind belongs to.
type ServiceReference struct {
	// Name is the API group; the core group is "core.miloapis.com".
	Name string `json:"name"`
}

// ParentResourceRef names a kind whose objects may be parents.
type ParentResourceRef struct {
	// APIGroup of the kind; empty means the core group.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind of the parent.
	Kind string `json:"kind"`
}

// SubresourceDefinition lists the permissions of one subresource.
type SubresourceDefinition struct {
	// Name of the subresource, such as "status".
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Permissions are verbs.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:Pattern=`^[a-z][a-z0-9-]*$`
	Permissions []string `json:"permissions"`
}

// SubresourceMode says what permission a subresource needs that is listed nowhere.
// +kubebuilder:validation:Enum=Separate;Inherit
type SubresourceMode string

// Modes.
const (
	// SubresourcesSeparate asks for one of its own, so that nobody has it.
	SubresourcesSeparate SubresourceMode = "Separate"
	// SubresourcesInherit asks for that of the resource itself.
	SubresourcesInherit SubresourceMode = "Inherit"
)

// ProtectedResourceSpec is the kind, and what may be done with its objects.
type ProtectedResourceSpec struct {
	// ServiceRef names the API group.
	ServiceRef ServiceReference `json:"serviceRef"`
	// Kind of the objects, such as "Workload".
	Kind string `json:"kind"`
	// Singular is the name of one, such as "workload".
	Singular string `json:"singular"`
	// Plural is the name of the resource, such as "workloads".
	Plural string `json:"plural"`
	// ParentResources are the kinds whose objects may be parents: who has a permission on the parent has it here.
	// +optional
	ParentResources []ParentResourceRef `json:"parentResources,omitempty"`
	// Permissions are verbs, or those of a subresource such as "status.update".
	Permissions []string `json:"permissions"`
	// Subresources have permissions of their own.
	// +optional
	// +listType=map
	// +listMapKey=name
	Subresources []SubresourceDefinition `json:"subresources,omitempty"`
	// UnlistedSubresources says what permission any other subresource needs; Separate unless set.
	// +optional
	UnlistedSubresources SubresourceMode `json:"unlistedSubresources,omitempty"`
}

// Registration is what a ProtectedResource has, as the model of the IAM store was made with it.
type Registration struct {
	// Group, Kind and Plural are those of the kind. The core group is "core.miloapis.com".
	Group  string `json:"group"`
	Kind   string `json:"kind"`
	Plural string `json:"plural"`
	// Permissions are those in force.
	// +optional
	// +listType=atomic
	Permissions []string `json:"permissions,omitempty"`
	// Parents are the kinds of parents that are in force, as group/Kind.
	// +optional
	// +listType=atomic
	Parents []string `json:"parents,omitempty"`
	// Generation is the one that all that was found in.
	Generation int64 `json:"generation"`
}

// ProtectedResourceStatus is what was found.
type ProtectedResourceStatus struct {
	// ObservedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Registered is what the object has, and nobody else gets as long as this says so. What is edited since, and is not in
	// here, is a new claim.
	// +optional
	Registered *Registration `json:"registered,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:default={{type:"Ready",status:"Unknown",reason:"Unknown",message:"Waiting for control plane to reconcile",lastTransitionTime:"1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProtectedResource registers a kind: its permissions can be given by roles.
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

	// +optional
	Spec ProtectedResourceSpec `json:"spec,omitempty"`
	// +optional
	// +kubebuilder:default={}
	Status ProtectedResourceStatus `json:"status,omitempty"`
}

// GetConditions are those of its status.
func (in *ProtectedResource) GetConditions() []metav1.Condition { return in.Status.Conditions }

// ProtectedResourceList is a list of registered kinds.
//
// +kubebuilder:object:root=true
type ProtectedResourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ProtectedResource `json:"items"`
}
