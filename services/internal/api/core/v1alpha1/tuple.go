package v1alpha1

import runtime "k8s.io/apimachinery/pkg/runtime"

// Tuple is one OpenFGA relationship tuple.
type Tuple struct {
	// Object is the object of the relationship, as type:id.
	Object string `json:"object"`
	// Relation is the name of the relation.
	Relation string `json:"relation"`
	// User is a user (type:id), a userset (type:id#relation) or a wildcard (type:*).
	User string `json:"user"`
	// Condition makes the tuple hold only when a condition of the model holds.
	// +optional
	Condition *TupleCondition `json:"condition,omitempty"`
}

// TupleCondition names a condition of the model with the part of its parameters
// that is known when the tuple is written.
type TupleCondition struct {
	// Name of the condition in the model.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Context holds values for some of the condition's parameters.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Context *runtime.RawExtension `json:"context,omitempty"`
}
