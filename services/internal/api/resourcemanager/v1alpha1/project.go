package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OwnerReference names the organization of a project.
type OwnerReference struct {
	// +kubebuilder:validation:Enum=Organization
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// ProjectSpec is whose a project is.
type ProjectSpec struct {
	// OwnerRef is the organization: who has a permission there has it on the project, once it is recorded in the status.
	OwnerRef OwnerReference `json:"ownerRef"`
}

// ProjectSuspension is a reason why a project stands still.
type ProjectSuspension struct {
	// +kubebuilder:validation:Enum=Abuse;Billing;Compliance;Administrative
	Reason string `json:"reason"`
	// +kubebuilder:validation:Enum=Operator;Consumer
	ReinstateAuthority string      `json:"reinstateAuthority"`
	SuspendedAt        metav1.Time `json:"suspendedAt"`
}

// ProjectOrganization is an Organization, and no other of its name.
type ProjectOrganization struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// ProjectStatus is others' to write, but for the organization, and for Ready where nobody else says it.
type ProjectStatus struct {
	// Organization is the one that the project belongs to: that which was first found under the name of its owner.
	// +optional
	Organization *ProjectOrganization `json:"organization,omitempty"`
	// +optional
	Suspensions []ProjectSuspension `json:"suspensions,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:default={{type:"Ready",status:"Unknown",reason:"Unknown",message:"Waiting for control plane to reconcile",lastTransitionTime:"1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Project belongs to an organization, and has a control plane of its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="discovery.miloapis.com/parent-contexts=Organization"
// +kubebuilder:printcolumn:name="Organization",type=string,JSONPath=`.spec.ownerRef.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Project struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ProjectSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={}
	Status ProjectStatus `json:"status,omitempty"`
}

// GetConditions are those of its status.
func (in *Project) GetConditions() []metav1.Condition { return in.Status.Conditions }

// ProjectList is a list of projects.
//
// +kubebuilder:object:root=true
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Project `json:"items"`
}
