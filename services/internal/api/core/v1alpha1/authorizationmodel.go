package v1alpha1

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/event"
)

// StoreRef names the store that a module extends.
type StoreRef struct {
	// Name of the Store.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Cluster holds the Store; empty means the cluster of this object.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// Path is accepted and ignored.
	//
	// Deprecated: use Cluster.
	// +optional
	Path string `json:"path,omitempty"`
}

// Key is that of the Store which an object of the cluster from refers to.
func (r StoreRef) Key(from string) event.Key {
	return event.Key{
		Cluster: cmp.Or(r.Cluster, from), GroupResource: event.GroupResource{Group: GroupVersion.Group, Resource: Stores}, Name: r.Name,
	}
}

// NoStore says to an object of the cluster called here that the Store it refers to does not exist.
func NoStore(store event.Key, here string) string {
	text := fmt.Sprintf("there is no Store %q in cluster %q: create it, or correct spec.storeRef", store.Name, store.Cluster)
	if store.Cluster != here {
		text += fmt.Sprintf(" (the name of a cluster is the --cluster of its watcher; this one is %q, which an empty spec.storeRef.cluster means, too)", here)
	}
	return text
}

// AuthorizationModelSpec is what a person asks for.
type AuthorizationModelSpec struct {
	// StoreRef names the store.
	StoreRef StoreRef `json:"storeRef"`
	// Model is one OpenFGA module in DSL; its first line is "module <name>".
	Model string `json:"model"`
	// Tuples to keep in the store.
	// +optional
	Tuples []Tuple `json:"tuples,omitempty"`
}

// LiveModel is the text of a module that was last part of a store's model. It stays there while a later one cannot be.
type LiveModel struct {
	// StoreUID is the UID of the Store: the text counts for no other, of the same name or not.
	StoreUID types.UID `json:"storeUID"`
	// Generation is the one that brought the text.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// Model is the text.
	Model string `json:"model"`
}

// AuthorizationModelStatus is what the services found and did.
type AuthorizationModelStatus struct {
	// ManagedTuples are the tuples that are, or are about to be, in the store on behalf of this object.
	// +optional
	// +listType=atomic
	ManagedTuples []Tuple `json:"managedTuples,omitempty"`
	// Ledger is in the place of managedTuples when these are many.
	// +optional
	Ledger *Ledger `json:"ledger,omitempty"`
	// TupleCount is the number of managed tuples.
	// +optional
	TupleCount int32 `json:"tupleCount,omitempty"`
	// StoreID is the store that managedTuples were written to.
	// +optional
	StoreID string `json:"storeId,omitempty"`
	// Live is the text that is part of the store's model.
	// +optional
	Live *LiveModel `json:"live,omitempty"`
	// ModelDigest stands for the module as it is part of the live model of a store. It is empty
	// unless that is what spec.model says, or said when only the tuples were others.
	// +optional
	ModelDigest string `json:"modelDigest,omitempty"`
	// AuthorizationModelID is the first model of the store that the module is part of as it is: so
	// are the later ones.
	// +optional
	AuthorizationModelID string `json:"authorizationModelId,omitempty"`
	// ObservedGeneration is the generation that the condition Ready speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AuthorizationModel is one module of a store's model, with tuples of its own.
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

	Spec AuthorizationModelSpec `json:"spec,omitempty"`
	// Until something is said of any generation, tools shall know that this one is in progress.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status AuthorizationModelStatus `json:"status,omitempty"`
}

// ModelDigest stands for the module in the model of an OpenFGA store: as long as it is the same, so is that.
func (in *AuthorizationModel) ModelDigest(storeID string) string {
	return digest(storeID, in.Spec.Model)
}

// Holds reports whether a generated object says what it must: what services write in its
// spec and annotations. What others add to it is theirs.
func (in *AuthorizationModel) Holds(want *AuthorizationModel) bool {
	for _, name := range GeneratedAnnotations() {
		if in.Annotations[name] != want.Annotations[name] {
			return false
		}
	}
	has, ref := in.Spec.StoreRef, want.Spec.StoreRef
	return has.Name == ref.Name && (ref.Cluster == "" || has.Cluster == ref.Cluster) && in.Spec.Model == want.Spec.Model
}

// GetConditions are those of its status.
func (in *AuthorizationModel) GetConditions() []metav1.Condition { return in.Status.Conditions }

// AuthorizationModelList is a list of authorization models.
//
// +kubebuilder:object:root=true
type AuthorizationModelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AuthorizationModel `json:"items"`
}
