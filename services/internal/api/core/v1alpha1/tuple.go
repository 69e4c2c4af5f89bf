package v1alpha1

import runtime "k8s.io/apimachinery/pkg/runtime"

// Tuple is one OpenFGA relationship tuple.
type Tuple struct {
	// object is the object of the relationship, as type:id.
	Object string `json:"object"`
	// relation is the name of the relation. The type of the object must define it.
	Relation string `json:"relation"`
	// user is a user (type:id), a userset (type:id#relation) or a wildcard (type:*).
	User string `json:"user"`
	// condition limits the tuple: it has an effect only if this condition of the model is met.
	// +optional
	Condition *TupleCondition `json:"condition,omitempty"`
}

// TupleCondition names a condition of the model, with the parameters that are known when the tuple is written.
type TupleCondition struct {
	// name is the name of the condition in the model.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// context holds values for parameters of the condition. Requests supply the others. An integer that OpenFGA would
	// round is refused; write it as a string.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Context *runtime.RawExtension `json:"context,omitempty"`
}
