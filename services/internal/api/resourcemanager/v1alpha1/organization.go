package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Address is a postal address.
type Address struct {
	// line1 is the first line of the address. The value has at most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Line1 string `json:"line1,omitempty"`
	// line2 is the second line of the address. The value has at most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Line2 string `json:"line2,omitempty"`
	// city is the name of the city. The value has at most 128 characters.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	City string `json:"city,omitempty"`
	// region is the name of the region. The value has at most 128 characters.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Region string `json:"region,omitempty"`
	// postalCode is the postal code. The value has at most 32 characters.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	PostalCode string `json:"postalCode,omitempty"`
	// country is a code of two upper-case letters, such as CH.
	// +kubebuilder:validation:Pattern=`^[A-Z]{2}$`
	Country string `json:"country"`
}

// ContactInfo names a contact of an organization.
type ContactInfo struct {
	// email is the address of the contact. The value has at most 256 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Email string `json:"email"`
	// name is the name of the contact. The value has at most 256 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// businessName is the name of the company. The value has at most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	BusinessName string `json:"businessName,omitempty"`
	// address is the postal address.
	// +optional
	Address *Address `json:"address,omitempty"`
}

// OrganizationSpec describes an organization.
type OrganizationSpec struct {
	// type is the type of organization. It cannot change after creation. Older versions of Milo's schema require it,
	// newer ones do not have it. Entail does not read it.
	// +kubebuilder:validation:Enum=Personal;Standard;Business;Government;Research;Education;Nonprofit;Other
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="organization type is immutable"
	// +optional
	Type string `json:"type,omitempty"`
	// contactInfo names a contact. Entail does not read it.
	// +optional
	ContactInfo *ContactInfo `json:"contactInfo,omitempty"`
}

// OrganizationStatus is the observed state of an Organization. Other software writes it. Entail writes
// Ready if no other software does.
type OrganizationStatus struct {
	// observedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions has Ready.
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

	// spec is the desired state.
	// +optional
	Spec OrganizationSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	// +kubebuilder:default={}
	Status OrganizationStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (in *Organization) GetConditions() []metav1.Condition { return in.Status.Conditions }
