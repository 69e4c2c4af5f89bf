package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StoreRef names a Store.
type StoreRef struct {
	// name is the name of the Store. The value has at most 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// cluster is the name of the cluster that holds the Store. The default is the cluster of this object. For a Store
	// of another cluster, only the status of that Store reports what happens to the document. The value has at most 253
	// characters.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Cluster string `json:"cluster,omitempty"`
}

// Named refers to a type or a union.
type Named struct {
	// name is the name of the type or union. The value has at most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
}

// Relationship connects the resources of a type with other resources.
type Relationship struct {
	// relation is the name of the relationship. The value has at most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	Relation string `json:"relation"`
	// targetTypes lists the types and unions of the related resources, at most 1,000.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	TargetTypes []Named `json:"targetTypes,omitempty"`
}

// ResourceType is a type of resource.
type ResourceType struct {
	// name is the name of the type. The value has at most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// idPrefix is the prefix of the ids of its resources. The value has at most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	IDPrefix string `json:"idPrefix,omitempty"`
	// relationships lists the relationships of the type, at most 200.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Relationships []Relationship `json:"relationships,omitempty"`
}

// Union is a common name for several types.
type Union struct {
	// name is the name of the union. The value has at most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// resourceTypes lists the types and unions in the union, at most 1,000.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	ResourceTypes []Named `json:"resourceTypes,omitempty"`
}

// Action is an operation on resources.
type Action struct {
	// name is the name of the action. The value has at most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
}

// RoleBinding allows the action to subjects that have it by a role binding on the resource.
type RoleBinding struct{}

// RelationshipAction allows the action to subjects that have another action on a related resource.
type RelationshipAction struct {
	// relation is the relationship that leads to the other resource. The value has at most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	Relation string `json:"relation"`
	// actionName is the action that the subject must have on the other resource. The value has at most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	ActionName string `json:"actionName"`
}

// Condition allows an action to some subjects: set exactly one of the two fields.
type Condition struct {
	// roleBinding allows the action to subjects that have it by a role binding on the resource. Write {}.
	// +optional
	RoleBinding *RoleBinding `json:"roleBinding,omitempty"`
	// relationshipAction allows the action to subjects that have another action on a related resource.
	// +optional
	RelationshipAction *RelationshipAction `json:"relationshipAction,omitempty"`
}

// ActionBinding adds an action to a type, or to each member of a union, and lists the conditions that allow the
// action.
type ActionBinding struct {
	// actionName is the name of the action. The value has at most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	ActionName string `json:"actionName"`
	// typeName is the name of the type or union. The value has at most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	TypeName string `json:"typeName"`
	// conditions lists the conditions that allow the action, at most 200. One of them is enough.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Conditions []Condition `json:"conditions,omitempty"`
}

// Policy is the part of a policy that one document holds.
type Policy struct {
	// resourceTypes lists the types that this document declares, at most 1,000.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	ResourceTypes []ResourceType `json:"resourceTypes,omitempty"`
	// unions lists common names for several types, at most 1,000.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Unions []Union `json:"unions,omitempty"`
	// actions lists the actions that this document declares, at most 1,000.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Actions []Action `json:"actions,omitempty"`
	// actionBindings adds actions to types, at most 1,000.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	ActionBindings []ActionBinding `json:"actionBindings,omitempty"`
}

// PolicyDocumentSpec is the desired state of a PolicyDocument.
type PolicyDocumentSpec struct {
	// storeRef names the Store. All documents of a Store form one policy. To set it you need the verb extend on that
	// Store.
	StoreRef StoreRef `json:"storeRef"`
	Policy   `json:",inline"`
}

// Finding is one error in a document.
type Finding struct {
	// path is the field, such as spec.actionBindings[2].typeName. It is empty for an error of the whole document.
	// +optional
	Path string `json:"path,omitempty"`
	// code identifies the kind of error, such as E-UNKNOWN-TYPE. Its meaning does not change between versions.
	Code string `json:"code"`
	// message describes the error.
	Message string `json:"message"`
	// hint describes the remedy.
	// +optional
	Hint string `json:"hint,omitempty"`
}

// PolicyDocumentStatus is the observed state of a PolicyDocument.
type PolicyDocumentStatus struct {
	// findings lists the errors in the order of the document, at most 100.
	// +optional
	// +listType=atomic
	Findings []Finding `json:"findings,omitempty"`
	// authorizationModel is the name of the AuthorizationModel that store-sync made of the document.
	// +optional
	AuthorizationModel string `json:"authorizationModel,omitempty"`
	// observedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, which sums up the others, Valid and Merged.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PolicyDocument is the part of a Store's policy that one service registers: its types, their actions, and the ways to
// these actions.
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

	// spec is the desired state.
	Spec PolicyDocumentSpec `json:"spec"`
	// status is the observed state.
	// +optional
	Status PolicyDocumentStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (in *PolicyDocument) GetConditions() []metav1.Condition { return in.Status.Conditions }
