package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds in this package.
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
	// StoreFinalizer delays the deletion of a Store until store-sync has deleted or released the OpenFGA store.
	StoreFinalizer = "core.platform-mesh.io/fga-store"
	// TuplesFinalizer delays the deletion of a Store or AuthorizationModel until tuple-sync has removed its tuples.
	TuplesFinalizer = "core.platform-mesh.io/fga-tuples"
	// BindingFinalizer delays the deletion of a kcp APIBinding until store-sync has removed the AuthorizationModels
	// that it generated for the APIBinding.
	BindingFinalizer = "core.platform-mesh.io/apibinding-finalizer"
)

// Labels.
const (
	// StoreNameLabel on a CustomResourceDefinition names the Store whose model includes the resource.
	StoreNameLabel = "core.platform-mesh.io/store-name"
	// AccountNameLabel on a Store names the account of which all users become members, if this is allowed.
	AccountNameLabel = "core.platform-mesh.io/account-name"
)

// Annotations of an AuthorizationModel that store-sync generated.
const (
	// ResourceAnnotation names the resource that the module is for, such as "widgets.example.com".
	ResourceAnnotation = "core.platform-mesh.io/resource"
	// ExportAnnotation names the kcp APIExport that offers the resource, as cluster/name.
	ExportAnnotation = "core.platform-mesh.io/apiexport"
	// RejectedAnnotation is the reason why there is no module for the resource.
	RejectedAnnotation = "core.platform-mesh.io/rejected"

	// DocumentAnnotation names the PolicyDocument from which the module was generated, as namespace/name. The
	// value [Roles] marks the module with the types that no document declares.
	DocumentAnnotation = "core.platform-mesh.io/policydocument"
	// PolicyAnnotation holds the content of that document when it was last valid, as JSON.
	PolicyAnnotation = "core.platform-mesh.io/policy"
	// DocumentUIDAnnotation is the UID of that document. The last valid content of an earlier document with the same
	// name is ignored.
	DocumentUIDAnnotation = "core.platform-mesh.io/policydocument-uid"
)

// GeneratedAnnotations lists the annotations that only services write.
func GeneratedAnnotations() []string {
	return []string{ResourceAnnotation, ExportAnnotation, RejectedAnnotation, DocumentAnnotation, PolicyAnnotation, DocumentUIDAnnotation}
}

// Roles replaces the name of a document for the module that defines the type of roles, which no document declares.
const Roles = "roles"

// Condition types.
const (
	// Ready is the summary: this generation of the object is part of the live model, and its tuples are written.
	// tuple-sync has checked the tuples against this model.
	Ready = "Ready"
	// StoreSynced reports whether the OpenFGA store exists (Store; by store-sync).
	StoreSynced = "StoreSynced"
	// ModelSynced reports whether the store's live model is the merge of all valid modules (Store; by store-sync).
	ModelSynced = "ModelSynced"
	// ModulesInSync reports whether all modules are part of the model as their objects declare them (Store; by
	// store-sync).
	ModulesInSync = "ModulesInSync"
	// NameUnique is False if OpenFGA has several stores with this name (Store; by store-sync).
	NameUnique = "NameUnique"
	// NameInSync is False if the OpenFGA store has another name than the Store and OpenFGA cannot rename it (Store; by store-sync).
	NameInSync = "NameInSync"
	// Adopted is False if it is not known that the OpenFGA store of IAM belongs to this cluster (Store; by
	// store-sync).
	Adopted = "Adopted"
	// Deleting reports the reason why a deletion waits (Store; by store-sync).
	Deleting = "Deleting"
	// Merged reports whether the module is part of the store's live model (AuthorizationModel; by store-sync).
	Merged = "Merged"
	// TuplesSynced reports whether all tuples of the object are in OpenFGA (by tuple-sync).
	TuplesSynced = "TuplesSynced"
	// RemovalsRecorded reports since when status.removedTuples lists all removed tuples (Store; by tuple-sync).
	RemovalsRecorded = "RemovalsRecorded"
)

// Syncing is the reason of [TuplesSynced] while tuples are being written. Every change passes through this stage, so
// the condition Ready ignores it.
const Syncing = "Syncing"

// Blocked is the reason of [Deleting] while other objects refer to the object.
const Blocked = "Blocked"

// RecordUnreadable is the reason of [TuplesSynced] while the record of managed tuples cannot be read.
const RecordUnreadable = "RecordUnreadable"

// BackendUnavailable is the reason of a condition that is unknown because OpenFGA does not answer.
const BackendUnavailable = "BackendUnavailable"

// LastGoodLive is the reason of [Merged] and [ModulesInSync] if the text of an object cannot be part of the model. Its
// last live text stays in the model.
const LastGoodLive = "LastGoodLive"

// InvalidCore is the reason of [ModelSynced] if the core module cannot be part of the model. Its last live text, if
// there is one, stays in the model.
const InvalidCore = "InvalidCore"
