package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the kinds in this package.
//
//nolint:gochecknoglobals // A schema.GroupVersion cannot be a constant.
var GroupVersion = schema.GroupVersion{Group: "core.platform-mesh.io", Version: "v1alpha1"}

// Resources of the kinds in this package.
const (
	Stores              = "stores"
	AuthorizationModels = "authorizationmodels"
)

// Finalizers. Other software relies on these names.
const (
	// StoreFinalizer holds a Store until store-sync has dealt with the OpenFGA store.
	StoreFinalizer = "core.platform-mesh.io/fga-store"
	// TuplesFinalizer holds a Store or AuthorizationModel until tuple-sync has removed its tuples.
	TuplesFinalizer = "core.platform-mesh.io/fga-tuples"
	// BindingFinalizer holds a kcp APIBinding until store-sync has dealt with the AuthorizationModels made for it.
	BindingFinalizer = "core.platform-mesh.io/apibinding-finalizer"
)

// Labels.
const (
	// StoreNameLabel on a CustomResourceDefinition names the Store whose model is to know its resource.
	StoreNameLabel = "core.platform-mesh.io/store-name"
	// AccountNameLabel on a Store names the account that everybody is to be a member of, where that is allowed.
	AccountNameLabel = "core.platform-mesh.io/account-name"
)

// Annotations of an AuthorizationModel that store-sync made.
const (
	// ResourceAnnotation is the resource that it is for, such as "widgets.example.com".
	ResourceAnnotation = "core.platform-mesh.io/resource"
	// ExportAnnotation is the kcp APIExport that offers the resource, as cluster/name.
	ExportAnnotation = "core.platform-mesh.io/apiexport"
	// RejectedAnnotation says why there can be no module for the resource.
	RejectedAnnotation = "core.platform-mesh.io/rejected"

	// DocumentAnnotation is the PolicyDocument that it was made of, as namespace/name; of the one
	// with the types that no document declares it is [Roles].
	DocumentAnnotation = "core.platform-mesh.io/policydocument"
	// PolicyAnnotation is what that document said when it was last valid, as JSON.
	PolicyAnnotation = "core.platform-mesh.io/policy"
	// DocumentUIDAnnotation is the UID of that document: what was valid of another of its name is gone.
	DocumentUIDAnnotation = "core.platform-mesh.io/policydocument-uid"
)

// GeneratedAnnotations are written by services alone.
func GeneratedAnnotations() []string {
	return []string{ResourceAnnotation, ExportAnnotation, RejectedAnnotation, DocumentAnnotation, PolicyAnnotation, DocumentUIDAnnotation}
}

// Roles stands in the place of a document's name: no document declares the type of roles.
const Roles = "roles"

// Condition types.
const (
	// Ready sums up: what this generation of the object adds to the model is live, and its tuples were
	// judged by that model and written (by tuple-sync).
	Ready = "Ready"
	// StoreSynced says that the OpenFGA store exists (Store; by store-sync).
	StoreSynced = "StoreSynced"
	// ModelSynced says that the store's live model is the merge of all modules that can be merged (Store; by store-sync).
	ModelSynced = "ModelSynced"
	// ModulesInSync says that all modules are part of the model as their objects have them (Store; by store-sync).
	ModulesInSync = "ModulesInSync"
	// NameUnique is False when OpenFGA has several stores of this name (Store; by store-sync).
	NameUnique = "NameUnique"
	// NameInSync is False when the OpenFGA store bears another name (Store; by store-sync).
	NameInSync = "NameInSync"
	// Adopted is False where the OpenFGA store of the IAM store is not known to be this cluster's (Store; by store-sync).
	Adopted = "Adopted"
	// Deleting tells what a deletion waits for (Store; by store-sync).
	Deleting = "Deleting"
	// Merged says that the module is part of the store's live model (AuthorizationModel; by store-sync).
	Merged = "Merged"
	// TuplesSynced says that all tuples of the object are in OpenFGA (by tuple-sync).
	TuplesSynced = "TuplesSynced"
	// RemovalsRecorded says since when status.removedTuples lists all removed tuples (Store; by tuple-sync).
	RemovalsRecorded = "RemovalsRecorded"
)

// Syncing is the reason of [TuplesSynced] while tuples are on their way: a stage of every
// change, on which nothing but this condition depends.
const Syncing = "Syncing"

// Blocked is the reason of [Deleting] while other objects refer to the object.
const Blocked = "Blocked"

// RecordUnreadable is the reason of [TuplesSynced] while the record of managed tuples cannot be read.
const RecordUnreadable = "RecordUnreadable"

// BackendUnavailable is the reason of a condition that is unknown because OpenFGA gives no answer.
const BackendUnavailable = "BackendUnavailable"

// LastGoodLive is the reason of [Merged] and [ModulesInSync] where the text of an object cannot be part of the model
// and its last live one stays there.
const LastGoodLive = "LastGoodLive"

// InvalidCore is the reason of [ModelSynced] where the core module cannot be part of the model. Its last live text, if
// there is one, stays there.
const InvalidCore = "InvalidCore"
