package v1alpha1

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/event"
)

// StoreRef names a Store.
type StoreRef struct {
	// name is the name of the Store.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// cluster is the name of the cluster that holds the Store. The default is the cluster of this object.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// path has no effect. It is accepted so that older manifests apply.
	//
	// Deprecated: use cluster.
	// +optional
	Path string `json:"path,omitempty"`
}

// Key returns the key of the Store that an object of the cluster from refers to.
func (r StoreRef) Key(from string) event.Key {
	return event.Key{
		Cluster: cmp.Or(r.Cluster, from), GroupResource: event.GroupResource{Group: GroupVersion.Group, Resource: Stores}, Name: r.Name,
	}
}

// StoreNotFoundMessage returns the message for an object of the cluster here whose Store does not exist.
func StoreNotFoundMessage(store event.Key, here string) string {
	text := fmt.Sprintf("there is no Store %q in cluster %q: create it, or correct spec.storeRef", store.Name, store.Cluster)
	if store.Cluster != here {
		text += fmt.Sprintf(" (the name of a cluster is the --cluster of its watcher; this one is %q, which an empty spec.storeRef.cluster means, too)", here)
	}
	return text
}

// AuthorizationModelSpec is the desired state of an AuthorizationModel.
type AuthorizationModelSpec struct {
	// storeRef names the Store whose model this module extends. To set it you need the verb extend on that Store.
	StoreRef StoreRef `json:"storeRef"`
	// model is one module in OpenFGA's language. Its first line is "module <name>". If an edit is invalid, the last
	// valid version stays in force.
	Model string `json:"model"`
	// tuples are written to the store and kept there. A tuple that you remove here is removed from the store. About
	// 7,000 tuples of 100 bytes fit.
	// +optional
	Tuples []Tuple `json:"tuples,omitempty"`
}

// LiveModel is the last version of a module that was in force. It stays in force while an edit is invalid.
type LiveModel struct {
	// storeUID is the UID of the Store. The text is not in force in another Store with the same name.
	StoreUID types.UID `json:"storeUID"`
	// generation is the generation of the object that introduced the text.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// model is the text of the module.
	Model string `json:"model"`
}

// AuthorizationModelStatus is the observed state of an AuthorizationModel. It holds records that only services may
// change.
type AuthorizationModelStatus struct {
	// managedTuples lists the tuples of this object that are in the store, or may be. tuple-sync writes the list before
	// it writes a tuple.
	// +optional
	// +listType=atomic
	ManagedTuples []Tuple `json:"managedTuples,omitempty"`
	// ledger replaces managedTuples if there are more than 256 tuples.
	// +optional
	Ledger *Ledger `json:"ledger,omitempty"`
	// tupleCount is the number of managed tuples.
	// +optional
	TupleCount int32 `json:"tupleCount,omitempty"`
	// storeId is the id of the OpenFGA store that holds the managed tuples.
	// +optional
	StoreID string `json:"storeId,omitempty"`
	// live is the version of the module that is in force.
	// +optional
	Live *LiveModel `json:"live,omitempty"`
	// modelDigest identifies the module as it is in the live model. It is empty if the live module differs from
	// spec.model.
	// +optional
	ModelDigest string `json:"modelDigest,omitempty"`
	// authorizationModelId is the id of the first OpenFGA model that holds the module in its present form. Later
	// models also hold it.
	// +optional
	AuthorizationModelID string `json:"authorizationModelId,omitempty"`
	// observedGeneration is the generation that the condition Ready describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, which sums up the others, Merged and TuplesSynced.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AuthorizationModel is one module of a Store's model, with its own tuples.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=fgamodel,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Store",type=string,JSONPath=`.spec.storeRef.name`
// +kubebuilder:printcolumn:name="Tuples",type=integer,JSONPath=`.status.tupleCount`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AuthorizationModel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	Spec AuthorizationModelSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status AuthorizationModelStatus `json:"status,omitempty"`
}

// ModelDigest returns a hash of the module's text and of the OpenFGA store that holds the module.
func (in *AuthorizationModel) ModelDigest(storeID string) string {
	return shortDigest(storeID, in.Spec.Model)
}

// MatchesDesired reports whether a generated object has the spec and annotations that services write in want. Other
// annotations may differ.
func (in *AuthorizationModel) MatchesDesired(want *AuthorizationModel) bool {
	for _, name := range GeneratedAnnotations() {
		if in.Annotations[name] != want.Annotations[name] {
			return false
		}
	}
	has, ref := in.Spec.StoreRef, want.Spec.StoreRef
	return has.Name == ref.Name && (ref.Cluster == "" || has.Cluster == ref.Cluster) && in.Spec.Model == want.Spec.Model
}

// GetConditions returns the conditions of the status.
func (in *AuthorizationModel) GetConditions() []metav1.Condition { return in.Status.Conditions }
