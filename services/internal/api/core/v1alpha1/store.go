package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DeletionPolicy says what becomes of the OpenFGA store when its Store is deleted.
// +kubebuilder:validation:Enum=Delete;Retain
type DeletionPolicy string

// Deletion policies.
const (
	// DeletionDelete deletes the OpenFGA store with everything in it.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionRetain leaves the OpenFGA store and its model; managed tuples go.
	DeletionRetain DeletionPolicy = "Retain"
)

// DiscoveryMode says whether a store's model includes the API server's own resources.
// +kubebuilder:validation:Enum=Auto;None
type DiscoveryMode string

// Discovery modes.
const (
	// DiscoveryAuto includes them unless the store is named "orgs".
	DiscoveryAuto DiscoveryMode = "Auto"
	// DiscoveryNone leaves them out.
	DiscoveryNone DiscoveryMode = "None"
)

// Adoption says which OpenFGA store that was there before, and bears the Store's name, becomes the Store's.
// +kubebuilder:validation:Enum=IfEmpty;Always
type Adoption string

// Adoptions.
const (
	// AdoptionIfEmpty takes one over that has neither a model nor tuples.
	AdoptionIfEmpty Adoption = "IfEmpty"
	// AdoptionAlways takes one over with all that is in it. To ask for that takes the right to adopt the Store.
	AdoptionAlways Adoption = "Always"
)

// StoreSpec is what a person asks for.
type StoreSpec struct {
	// CoreModule is an OpenFGA module in DSL; its first line is "module <name>".
	CoreModule string `json:"coreModule"`
	// Tuples to keep in the store.
	// +optional
	Tuples []Tuple `json:"tuples,omitempty"`
	// DeletionPolicy is Delete unless set.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// Discovery is Auto unless set.
	// +optional
	Discovery DiscoveryMode `json:"discovery,omitempty"`
	// Adoption is IfEmpty unless set.
	// +optional
	Adoption Adoption `json:"adoption,omitempty"`
}

// ModuleState says whether a module is part of the live model.
type ModuleState string

// ModuleStatus tells what became of one module of the store's model.
type ModuleStatus struct {
	// Name of the module in its first line; empty when it could not be read.
	// +optional
	Name string `json:"name,omitempty"`
	// Source is where the module comes from, for example "authorizationmodel/demo-docs".
	Source string `json:"source"`
	// State is Merged, Duplicate, LastGoodLive or Rejected.
	State ModuleState `json:"state"`
	// Message tells why a module is left out and what to do.
	// +optional
	Message string `json:"message,omitempty"`
	// Digest stands for the types of a module that is no text, as they are part of the model.
	// +optional
	Digest string `json:"digest,omitempty"`
}

// LiveCoreModule is the core module that was last part of the store's model, with the discovered modules beside it. It stays there
// while a later one cannot be.
type LiveCoreModule struct {
	// Generation is the one that brought the text.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// CoreModule is the text.
	CoreModule string `json:"coreModule"`
	// Discovered lists the discovered modules that are part of the model.
	// +optional
	// +listType=atomic
	Discovered []LiveDiscovered `json:"discovered,omitzero"`
}

// LiveDiscovered is a discovered module that is part of the store's model.
type LiveDiscovered struct {
	// Source is where the module comes from, for example "discovered/secrets".
	Source string `json:"source"`
	// Model is the part of the module's text that is live; empty if that is all of it.
	// +optional
	Model string `json:"model,omitempty"`
}

// StoreStatus is what the services found and did.
type StoreStatus struct {
	// StoreID is OpenFGA's id of the store.
	// +optional
	StoreID string `json:"storeId,omitempty"`
	// Adopted means that others made the store, or one before it: it is kept when this object is deleted, without the
	// managed tuples.
	// +optional
	Adopted bool `json:"adopted,omitempty"`
	// AuthorizationModelID is the id of the model that was last written.
	// +optional
	AuthorizationModelID string `json:"authorizationModelId,omitempty"`
	// ModelDigest stands for what this object adds to the live model. It is empty unless that is
	// what its spec says, or said when only its tuples were others.
	// +optional
	ModelDigest string `json:"modelDigest,omitempty"`
	// ManagedTuples are the tuples that are, or are about to be, in the store on behalf of this object.
	// +optional
	// +listType=atomic
	ManagedTuples []Tuple `json:"managedTuples,omitempty"`
	// Ledger is in the place of managedTuples when these are many.
	// +optional
	Ledger *Ledger `json:"ledger,omitempty"`
	// ManagedTuplesStoreID is the store that managedTuples were written to.
	// +optional
	ManagedTuplesStoreID string `json:"managedTuplesStoreId,omitempty"`
	// RemovedTuples are the tuples that tuple-sync removed lately from the store, on behalf of any object. Those that a restored
	// database of OpenFGA brings back are removed again.
	// +optional
	RemovedTuples *RemovedTuples `json:"removedTuples,omitempty"`
	// Live is the core module that is part of the model.
	// +optional
	Live *LiveCoreModule `json:"live,omitempty"`
	// Modules of the model in canonical order.
	// +optional
	// +listType=atomic
	Modules []ModuleStatus `json:"modules,omitempty"`
	// ObservedGeneration is the generation that the condition Ready speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// TupleCount is the number of managed tuples.
	// +optional
	TupleCount int32 `json:"tupleCount,omitempty"`
}

// Store is an OpenFGA store with its core module and tuples.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=fgastore,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Store ID",type=string,JSONPath=`.status.storeId`
// +kubebuilder:printcolumn:name="Model ID",type=string,JSONPath=`.status.authorizationModelId`
// +kubebuilder:printcolumn:name="Tuples",type=integer,JSONPath=`.status.tupleCount`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Store struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec StoreSpec `json:"spec,omitempty"`
	// Until something is said of any generation, tools shall know that this one is in progress.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status StoreStatus `json:"status,omitempty"`
}

// ModelDigest stands for what the Store asks of its model: as long as it is the same, so is that.
func (in *Store) ModelDigest() string {
	return digest(in.Spec.CoreModule, string(in.Spec.Discovery))
}

// GetConditions are those of its status.
func (in *Store) GetConditions() []metav1.Condition { return in.Status.Conditions }

// StoreList is a list of stores.
//
// +kubebuilder:object:root=true
type StoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Store `json:"items"`
}
