package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StoreRef names the Store whose policy a document is part of.
type StoreRef struct {
	// Name of the Store.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Cluster holds the Store; empty means the cluster of this object. What becomes of a document
	// of another cluster is told in the status of the Store alone.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Cluster string `json:"cluster,omitempty"`
}

// Named refers to a type or a union by its name.
type Named struct {
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
}

// Relationship leads from the resources of a type to others.
type Relationship struct {
	// +kubebuilder:validation:MaxLength=256
	Relation string `json:"relation"`
	// TargetTypes are types and unions.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	TargetTypes []Named `json:"targetTypes,omitempty"`
}

// ResourceType is a type of resource.
type ResourceType struct {
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// IDPrefix begins the ids of its resources.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	IDPrefix string `json:"idPrefix,omitempty"`
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Relationships []Relationship `json:"relationships,omitempty"`
}

// Union is a common name for several types.
type Union struct {
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	ResourceTypes []Named `json:"resourceTypes,omitempty"`
}

// Action is something that can be done to resources.
type Action struct {
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
}

// RoleBinding allows whom a role binding gives the action.
type RoleBinding struct{}

// RelationshipAction allows who may take an action on a related resource.
type RelationshipAction struct {
	// +kubebuilder:validation:MaxLength=256
	Relation string `json:"relation"`
	// +kubebuilder:validation:MaxLength=256
	ActionName string `json:"actionName"`
}

// Condition is one way to be allowed: exactly one of the two.
type Condition struct {
	// +optional
	RoleBinding *RoleBinding `json:"roleBinding,omitempty"`
	// +optional
	RelationshipAction *RelationshipAction `json:"relationshipAction,omitempty"`
}

// ActionBinding says that an action exists on a type, or on each member of a union, and who may take it.
type ActionBinding struct {
	// +kubebuilder:validation:MaxLength=256
	ActionName string `json:"actionName"`
	// TypeName is a type or a union.
	// +kubebuilder:validation:MaxLength=256
	TypeName string `json:"typeName"`
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Conditions []Condition `json:"conditions,omitempty"`
}

// Policy is the part of a policy that one document holds.
type Policy struct {
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	ResourceTypes []ResourceType `json:"resourceTypes,omitempty"`
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Unions []Union `json:"unions,omitempty"`
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Actions []Action `json:"actions,omitempty"`
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	ActionBindings []ActionBinding `json:"actionBindings,omitempty"`
}

// PolicyDocumentSpec is what a service registers.
type PolicyDocumentSpec struct {
	// StoreRef names the store. All documents of a store form one policy.
	StoreRef StoreRef `json:"storeRef"`
	Policy   `json:",inline"`
}

// Finding is one thing that is wrong with a document.
type Finding struct {
	// Path is the field, such as spec.actionBindings[2].typeName; empty for the whole.
	// +optional
	Path string `json:"path,omitempty"`
	// Code never changes its meaning, such as E-UNKNOWN-TYPE.
	Code string `json:"code"`
	// Message says what is wrong.
	Message string `json:"message"`
	// Hint says what to do.
	// +optional
	Hint string `json:"hint,omitempty"`
}

// PolicyDocumentStatus is what store-sync found and did.
type PolicyDocumentStatus struct {
	// Findings are the errors in the order of the document, at most 100 of them.
	// +optional
	// +listType=atomic
	Findings []Finding `json:"findings,omitempty"`
	// AuthorizationModel is the object that holds the module made of the document.
	// +optional
	AuthorizationModel string `json:"authorizationModel,omitempty"`
	// ObservedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PolicyDocument is the part of a store's policy that one service registers: its types of
// resource, what can be done to them, and by whom.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=poldoc,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`
// +kubebuilder:printcolumn:name="Store",type=string,JSONPath=`.spec.storeRef.name`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PolicyDocument struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PolicyDocumentSpec `json:"spec"`
	// +optional
	Status PolicyDocumentStatus `json:"status,omitempty"`
}

// GetConditions are those of its status.
func (in *PolicyDocument) GetConditions() []metav1.Condition { return in.Status.Conditions }

// PolicyDocumentList is a list of documents.
//
// +kubebuilder:object:root=true
type PolicyDocumentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PolicyDocument `json:"items"`
}
