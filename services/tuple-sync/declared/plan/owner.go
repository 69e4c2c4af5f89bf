package plan

import (
	"time"

	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// Owner holds the facts about an object that declares tuples.
type Owner struct {
	Key event.Key
	UID string
	// Generation is the generation of these facts.
	Generation int64
	// IsStore marks the Store itself, which has the strongest claims.
	IsStore bool
	Created time.Time

	Declared []tuple.Tuple
	// Record lists the tuples that are or may be in a store because of this object.
	Record TupleRecord
	// StatusStoreID is the store that the status names, even if nothing is recorded.
	StatusStoreID string
	// TargetStoreID is the OpenFGA store for the tuples; empty while none exists.
	TargetStoreID string
	// Store is the Store that it refers to, or is. StoreMissing means that this Store does not exist.
	Store        event.Key
	StoreMissing bool
	// Reserved means that the Store is that of IAM, where tuples of some types cannot be declared.
	Reserved bool
	// RecordedElsewhere means that another Store owns the OpenFGA store of the record.
	RecordedElsewhere bool

	// Deleting means that the object has a deletion timestamp.
	Deleting bool
	// HasDependents means that others still need it. Its tuples then stay even during deletion.
	HasDependents bool
	// HasFinalizer means that our finalizer is set.
	HasFinalizer bool
	// Deleted means that the object no longer exists, although its record was not cleared: a client removed our
	// finalizer.
	Deleted bool
	// Unwritable means that the object cannot be changed, so it stays as it is.
	Unwritable bool

	// Contested bounds how long another replica may still execute the record. Until then the record stays open, and no
	// tuple of it is handed over.
	Contested time.Duration

	// Condition, of the tuples, and Ready are the last that we wrote.
	Condition, Ready OwnerCondition
	// ModuleJudged means that store-sync has decided on this generation's module, and ModuleLive that the module is
	// live.
	ModuleJudged, ModuleLive bool
	// Obstacle is a condition of store-sync that prevents Ready; its type is empty for none.
	Obstacle condition.Condition
	// Outdated means that an earlier version of the object's module is live. New tuples then wait.
	Outdated bool
	// Size estimates the object without any tuple, in bytes.
	Size int
}

// IsDeletionDeferred reports whether the Store of IAM is being deleted and still needed. No event announces the end of that.
func (o *Owner) IsDeletionDeferred() bool {
	return o.Reserved && o.IsStore && o.Deleting && o.HasDependents
}

// isForbiddenOwnerTuple reports whether a tuple names an owner of the IAM store that this object may not declare. Otherwise any
// author of an extension could adopt the store, or disown it.
func (o *Owner) isForbiddenOwnerTuple(t tuple.Tuple) bool {
	named := iam.Tuple{User: t.User, Relation: t.Relation, Object: t.Object}
	return o.Reserved && iam.IsStoreOwnerTuple(named) && (!o.IsStore || iam.StoreOfOwnerTuple(named) != o.Store.Name)
}

// TupleRecord lists tuples that were, or may have been, written to a store.
type TupleRecord struct {
	StoreID string
	Tuples  []tuple.Tuple
}

// isRecordInStore reports whether everything recorded is in the store.
func (o *Owner) isRecordInStore() bool {
	switch o.Condition.Reason {
	case Synced, Pending, Invalid:
		return true
	}
	return len(o.Record.Tuples) == 0
}

// hasMovedStore reports whether the owner's tuples were in another store before. An empty record then does not mean that the
// owner is new.
func (o *Owner) hasMovedStore() bool {
	return o.Condition.Reason == Syncing && o.StatusStoreID != o.TargetStoreID
}

// ownerPhase is the relation of an owner to one store.
type ownerPhase int

const (
	// unrelated: nothing to do here, or the other store of a move comes first.
	unrelated ownerPhase = iota
	// noStore: no store and nothing recorded.
	noStore
	// storeUnknown: its store is unknown, or it cannot be changed; the record stays.
	storeUnknown
	// here: its tuples belong here.
	here
	// leaving: its tuples belong to another store now.
	leaving
	// deleting: the object is being deleted.
	deleting
	// deleted: the object was deleted without our finalizer.
	deleted
)

func (o *Owner) phaseInStore(storeID string) ownerPhase {
	recorded := o.Record.StoreID
	switch {
	case recorded != "" && recorded != storeID:
		return unrelated
	case o.Unwritable && recorded == "":
		return unrelated
	case o.Unwritable:
		return storeUnknown
	case o.Deleted:
		return deleted
	case o.Deleting && !o.HasDependents:
		return deleting
	case recorded == "" && o.TargetStoreID == "":
		return noStore
	case o.TargetStoreID == storeID:
		return here
	case recorded == "":
		return unrelated
	case o.TargetStoreID == "" && !o.RecordedElsewhere:
		return storeUnknown
	}
	return leaving
}
