package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OwnerReference names the organization of a project.
type OwnerReference struct {
	// kind is Organization.
	// +kubebuilder:validation:Enum=Organization
	Kind string `json:"kind"`
	// name is the name of the Organization.
	Name string `json:"name"`
}

// ProjectSpec names the owner of a project.
type ProjectSpec struct {
	// ownerRef names the Organization of the project. Subjects with a permission on the Organization have it on the
	// project, once status.organization records it. To set it you need the verb bind on the Organization.
	OwnerRef OwnerReference `json:"ownerRef"`
}

// ProjectSuspension is a reason for which a project is suspended. Entail does not read it.
type ProjectSuspension struct {
	// reason is Abuse, Billing, Compliance or Administrative.
	// +kubebuilder:validation:Enum=Abuse;Billing;Compliance;Administrative
	Reason string `json:"reason"`
	// reinstateAuthority is Operator or Consumer.
	// +kubebuilder:validation:Enum=Operator;Consumer
	ReinstateAuthority string `json:"reinstateAuthority"`
	// suspendedAt is the time of the suspension.
	SuspendedAt metav1.Time `json:"suspendedAt"`
}

// ProjectOrganization identifies the Organization of a project.
type ProjectOrganization struct {
	// name is the name of the Organization.
	Name string `json:"name"`
	// uid is the UID of the Organization.
	UID string `json:"uid"`
}

// ProjectStatus is the observed state of a Project. Other software writes it, except for organization. Entail also
// writes Ready if no other software does.
type ProjectStatus struct {
	// organization is the Organization that the project belongs to: the first one that was found by the name in
	// spec.ownerRef. Only services may change it.
	// +optional
	Organization *ProjectOrganization `json:"organization,omitempty"`
	// suspensions lists the reasons for which the project is suspended. Entail does not read them.
	// +optional
	Suspensions []ProjectSuspension `json:"suspensions,omitempty"`
	// conditions has Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:default={{type:"Ready",status:"Unknown",reason:"Unknown",message:"Waiting for control plane to reconcile",lastTransitionTime:"1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Project belongs to an organization, and has its own control plane.
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

	// spec is the desired state.
	Spec ProjectSpec `json:"spec"`
	// status is the observed state.
	// +optional
	// +kubebuilder:default={}
	Status ProjectStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (in *Project) GetConditions() []metav1.Condition { return in.Status.Conditions }
