package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Address is where an organization is.
type Address struct {
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Line1 string `json:"line1,omitempty"`
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Line2 string `json:"line2,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	City string `json:"city,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Region string `json:"region,omitempty"`
	// +kubebuilder:validation:MaxLength=32
	// +optional
	PostalCode string `json:"postalCode,omitempty"`
	// Country has two letters.
	// +kubebuilder:validation:Pattern=`^[A-Z]{2}$`
	Country string `json:"country"`
}

// ContactInfo says how to reach an organization.
type ContactInfo struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Email string `json:"email"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=256
	// +optional
	BusinessName string `json:"businessName,omitempty"`
	// +optional
	Address *Address `json:"address,omitempty"`
}

// OrganizationSpec is what an organization is.
type OrganizationSpec struct {
	// Type is required by older versions of the published schema, and unknown to newer ones.
	// +kubebuilder:validation:Enum=Personal;Standard;Business;Government;Research;Education;Nonprofit;Other
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="organization type is immutable"
	// +optional
	Type string `json:"type,omitempty"`
	// +optional
	ContactInfo *ContactInfo `json:"contactInfo,omitempty"`
}

// OrganizationStatus is others' to write, but for Ready where nobody else says it.
type OrganizationStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:default={{type:"Ready",status:"Unknown",reason:"Unknown",message:"Waiting for control plane to reconcile",lastTransitionTime:"1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Organization owns projects. Its namespace is "organization-<name>".
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={datum,entail}
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="discovery.miloapis.com/parent-contexts=Platform"
// +kubebuilder:printcolumn:name="Display Name",type=string,JSONPath=`.metadata.annotations.kubernetes\.io/display-name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Organization struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec OrganizationSpec `json:"spec,omitempty"`
	// +optional
	// +kubebuilder:default={}
	Status OrganizationStatus `json:"status,omitempty"`
}

// GetConditions are those of its status.
func (in *Organization) GetConditions() []metav1.Condition { return in.Status.Conditions }

// OrganizationList is a list of organizations.
//
// +kubebuilder:object:root=true
type OrganizationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Organization `json:"items"`
}
