package plan

import (
	"time"

	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// Owner is an object that wants tuples, as far as a plan needs to know it.
type Owner struct {
	Key event.Key
	UID string
	// Generation of the object that these facts are from.
	Generation int64
	// IsStore owners come before others where two contradict: they are the Store itself.
	IsStore bool
	Created time.Time

	// Declared are the tuples that the object asks for.
	Declared []tuple.Tuple
	// Record is what is, or may be, in a store on behalf of this object.
	Record Record
	// StatusStoreID is the store that the status names, be anything recorded in it or not.
	StatusStoreID string
	// TargetStoreID is the OpenFGA store that the tuples belong in; empty while there is none.
	TargetStoreID string
	// Store is the Store object it refers to, or is. StoreMissing means that there is none.
	Store        event.Key
	StoreMissing bool
	// Reserved means that the Store is that of IAM, where some types are not for others to declare tuples of.
	Reserved bool
	// RecordedElsewhere means that another Store than the one it refers to has the recorded store.
	RecordedElsewhere bool

	// Deleting means that the object goes as soon as nothing holds it.
	Deleting bool
	// HasDependents means that others still need it: deleting or not, its tuples stay.
	HasDependents bool
	// HasFinalizer means that ours is on it.
	HasFinalizer bool
	// Deleted means that the object is no more, although its record was not cleared:
	// somebody took our finalizer off.
	Deleted bool
	// Unwritable means that the API server refuses changes of it: it stays as it is.
	Unwritable bool

	// Contested is for how long another replica may still write what the record speaks of: until then
	// it answers for all of that, and is not closed; nobody else is told to have any of it.
	Contested time.Duration

	// Condition of its tuples, and Ready, are those that we wrote last.
	Condition, Ready Condition
	// ModuleJudged means that store-sync has decided on this generation of the object's module,
	// ModuleLive that the module is part of the live model.
	ModuleJudged, ModuleLive bool
	// Obstacle is what store-sync says against the object being ready; it has no type if nothing.
	Obstacle condition.Condition
	// Outdated means that an earlier text of the object's module is live in its place: what this
	// generation gives waits for its own.
	Outdated bool
	// Size is about that of the object without any tuple, in bytes.
	Size int
}

// Lingers says that the Store of IAM is to go, and is still needed: no event tells when it is not.
func (o *Owner) Lingers() bool { return o.Reserved && o.IsStore && o.Deleting && o.HasDependents }

// claimsStore says whether a tuple says whose the IAM store is, and is not the Store's to declare. Nobody asks who extends the Store
// whether they may take it over, and whoever says that it is another's has it left alone.
func (o *Owner) claimsStore(t tuple.Tuple) bool {
	named := iam.Tuple{User: t.User, Relation: t.Relation, Object: t.Object}
	return o.Reserved && iam.NamesOwner(named) && (!o.IsStore || iam.OwnerOf(named) != o.Store.Name)
}

// Record is what was, or may have been, written to a store.
type Record struct {
	StoreID string
	Tuples  []tuple.Tuple
}

// inStep says that everything recorded is in the store.
func (o *Owner) inStep() bool {
	switch o.Condition.Reason {
	case Synced, Pending, Invalid:
		return true
	}
	return len(o.Record.Tuples) == 0
}

// moved says that the owner's tuples were in another store before: that none is recorded here does not mean that it is new.
func (o *Owner) moved() bool {
	return o.Condition.Reason == Syncing && o.StatusStoreID != o.TargetStoreID
}

// phase is what an owner is to one store.
type phase int

const (
	// unrelated: nothing here, or not before the other end of a move is done.
	unrelated phase = iota
	// noStore: has no store yet and nothing recorded.
	noStore
	// storeUnknown: has lost sight of its store; what is recorded stays as it is.
	storeUnknown
	// here: its tuples belong here.
	here
	// leaving: its tuples belong elsewhere now.
	leaving
	// deleting: it goes.
	deleting
	// deleted: it went past us.
	deleted
)

func (o *Owner) phase(storeID string) phase {
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
