package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DeletionPolicy selects what happens to the OpenFGA store when its Store is deleted.
// +kubebuilder:validation:Enum=Delete;Retain
type DeletionPolicy string

// Deletion policies.
const (
	// DeletionDelete deletes the OpenFGA store with its whole content.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionRetain keeps the OpenFGA store and its model. Only the managed tuples are removed.
	DeletionRetain DeletionPolicy = "Retain"
)

// DiscoveryMode selects whether the model of a store includes resources of the API server.
// +kubebuilder:validation:Enum=Auto;None
type DiscoveryMode string

// Discovery modes.
const (
	// DiscoveryAuto includes these resources unless the store is named "orgs".
	DiscoveryAuto DiscoveryMode = "Auto"
	// DiscoveryNone excludes these resources.
	DiscoveryNone DiscoveryMode = "None"
)

// Adoption selects which existing OpenFGA store of the same name a Store takes over.
// +kubebuilder:validation:Enum=IfEmpty;Always
type Adoption string

// Adoption modes.
const (
	// AdoptionIfEmpty takes over a store that has neither a model nor tuples.
	AdoptionIfEmpty Adoption = "IfEmpty"
	// AdoptionAlways takes over a store with its whole content. It requires the verb adopt on the Store.
	AdoptionAlways Adoption = "Always"
)

// StoreSpec is the desired state of a Store.
type StoreSpec struct {
	// coreModule is the core module of the model, in OpenFGA's language. Its first line is "module <name>". Without a
	// valid core module the store gets no model. If an edit is invalid, the last valid version stays in force.
	CoreModule string `json:"coreModule"`
	// tuples are written to the store and kept there. A tuple that you remove here is removed from the store. About
	// 7,000 tuples of 100 bytes fit.
	// +optional
	Tuples []Tuple `json:"tuples,omitempty"`
	// deletionPolicy selects what happens to the OpenFGA store when this object is deleted. Delete (the default)
	// deletes it with all tuples. Retain keeps it with its model, and removes only the tuples that objects declare.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// discovery adds modules for resources that the API server serves. Auto (the default) adds them, unless the Store
	// is named "orgs" or its core module has no type of accounts. None adds none.
	// +optional
	Discovery DiscoveryMode `json:"discovery,omitempty"`
	// adoption selects which existing OpenFGA store of this name becomes this object's. IfEmpty (the default) takes
	// over a store without model and tuples. Always takes over any store and replaces its model; it needs the verb
	// adopt on the Store.
	// +optional
	Adoption Adoption `json:"adoption,omitempty"`
}

// ModuleState reports whether a module is part of the live model.
type ModuleState string

// ModuleStatus is the state of one module of the model.
type ModuleStatus struct {
	// name is the name in the first line of the module. It is empty if the text cannot be parsed.
	// +optional
	Name string `json:"name,omitempty"`
	// source is the origin of the module, for example "authorizationmodel/demo-docs".
	Source string `json:"source"`
	// state is Merged, Duplicate, LastGoodLive or Rejected.
	State ModuleState `json:"state"`
	// message is the reason why the module is not in the model, and the remedy.
	// +optional
	Message string `json:"message,omitempty"`
	// digest is a hash of the module's types in the model. Only modules without a text have it.
	// +optional
	Digest string `json:"digest,omitempty"`
}

// LiveCoreModule is the last version of the core module that was in force, with its discovered modules. It stays in
// force while an edit is invalid.
type LiveCoreModule struct {
	// generation is the generation of the object that introduced the text.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// coreModule is the text of the core module.
	CoreModule string `json:"coreModule"`
	// discovered lists the discovered modules in the model.
	// +optional
	// +listType=atomic
	Discovered []LiveDiscovered `json:"discovered,omitzero"`
}

// LiveDiscovered is a discovered module in the model.
type LiveDiscovered struct {
	// source is the origin of the module, for example "discovered/secrets".
	Source string `json:"source"`
	// model is the part of the module's text that is in force. Empty means the whole text.
	// +optional
	Model string `json:"model,omitempty"`
}

// StoreStatus is the observed state of a Store. It holds records that only services may change.
type StoreStatus struct {
	// storeId is the id of the store in OpenFGA.
	// +optional
	StoreID string `json:"storeId,omitempty"`
	// adopted reports that the store existed before this object took it over. When this object is deleted, such a store
	// stays; only the managed tuples are removed.
	// +optional
	Adopted bool `json:"adopted,omitempty"`
	// authorizationModelId is the id of the newest model that store-sync wrote.
	// +optional
	AuthorizationModelID string `json:"authorizationModelId,omitempty"`
	// modelDigest identifies the part of the live model that comes from this object. It is empty if that part differs
	// from the spec.
	// +optional
	ModelDigest string `json:"modelDigest,omitempty"`
	// managedTuples lists the tuples of this object that are in the store, or may be. tuple-sync writes the list before
	// it writes a tuple.
	// +optional
	// +listType=atomic
	ManagedTuples []Tuple `json:"managedTuples,omitempty"`
	// ledger replaces managedTuples if there are more than 256 tuples.
	// +optional
	Ledger *Ledger `json:"ledger,omitempty"`
	// managedTuplesStoreId is the id of the OpenFGA store that holds the managed tuples.
	// +optional
	ManagedTuplesStoreID string `json:"managedTuplesStoreId,omitempty"`
	// removedTuples lists the tuples that tuple-sync removed from the store in the last 30 days, for any object. If a
	// restored database brings one back, tuple-sync removes it again.
	// +optional
	RemovedTuples *RemovedTuples `json:"removedTuples,omitempty"`
	// live is the version of the core module that is in force.
	// +optional
	Live *LiveCoreModule `json:"live,omitempty"`
	// modules lists all modules of the model, in the order in which they are merged.
	// +optional
	// +listType=atomic
	Modules []ModuleStatus `json:"modules,omitempty"`
	// observedGeneration is the generation that the condition Ready describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, which sums up the others, and StoreSynced, ModelSynced, ModulesInSync, TuplesSynced,
	// NameUnique, NameInSync, Adopted, RemovalsRecorded and Deleting.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// tupleCount is the number of managed tuples.
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
// +kubebuilder:printcolumn:name="Deletion",type=string,JSONPath=`.status.conditions[?(@.type=="Deleting")].message`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Store struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	Spec StoreSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status StoreStatus `json:"status,omitempty"`
}

// ModelDigest returns a hash of the fields that the Store's model depends on.
func (in *Store) ModelDigest() string {
	return shortDigest(in.Spec.CoreModule, string(in.Spec.Discovery))
}

// GetConditions returns the conditions of the status.
func (in *Store) GetConditions() []metav1.Condition { return in.Status.Conditions }
