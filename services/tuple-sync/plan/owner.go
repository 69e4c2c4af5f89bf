package plan

import (
	"time"

	"github.com/entail-dev/entail/services/internal/event"
)

// Owner is an object that wants tuples, as far as a plan needs to know it.
type Owner struct {
	Key event.Key
	UID string
	// Generation of the object that these facts are from.
	Generation int64
	// Principal owners come before others where two contradict: the Store itself does.
	Principal bool
	Created   time.Time

	// Declared are the tuples that the object asks for.
	Declared []Tuple
	// Record is what is, or may be, in a store on behalf of this object.
	Record Record
	// Named is the store that the status names, be anything recorded in it or not.
	Named string
	// Home is the id of the OpenFGA store that the tuples belong in; empty while there is none.
	Home string
	// Stray means that the Store object it refers to does not exist.
	Stray bool
	// Claimed means that another Store than the one it refers to has the recorded store.
	Claimed bool

	// Deleting means that the object goes as soon as nothing holds it.
	Deleting bool
	// Needed means that others still depend on it: deleting or not, its tuples stay.
	Needed bool
	// Held means that our finalizer is on it.
	Held bool
	// Gone means that the object is no more, although its record was not cleared:
	// somebody took our finalizer off.
	Gone bool
	// Stuck means that its status cannot be written: it stays as it is.
	Stuck bool

	// Condition is the one that we said last.
	Condition Condition
	// Judged means that store-sync has ruled on this generation of the object's module,
	// Live that the module is part of the live model.
	Judged, Live bool
	// Bulk is about the size of the object without any tuple, in bytes.
	Bulk int
}

// Record is a ledger: tuples and the store they were written to.
type Record struct {
	StoreID string
	Tuples  []Tuple
}

// settled says that everything recorded is in the store.
func (o *Owner) settled() bool {
	switch o.Condition.Reason {
	case Synced, Pending, Invalid:
		return true
	}
	return len(o.Record.Tuples) == 0
}

// stage is what an owner is to one store.
type stage int

const (
	// absent: nothing here, or not before the other end of a move is done.
	absent stage = iota
	// waits: has no store yet and nothing recorded.
	waits
	// frozen: has lost sight of its store; what is recorded stays as it is.
	frozen
	// stays: its tuples belong here.
	stays
	// moves: its tuples belong elsewhere now.
	moves
	// leaves: it is being deleted.
	leaves
	// gone: it was deleted past us.
	gone
)

func (o *Owner) stage(storeID string) stage {
	recorded := o.Record.StoreID
	switch {
	case recorded != "" && recorded != storeID:
		return absent
	case o.Stuck && recorded == "":
		return absent
	case o.Stuck:
		return frozen
	case o.Gone:
		return gone
	case o.Deleting && !o.Needed:
		return leaves
	case recorded == "" && o.Home == "":
		return waits
	case o.Home == storeID:
		return stays
	case recorded == "":
		return absent
	case o.Home == "" && !o.Claimed:
		return frozen
	}
	return moves
}

// Abandons means that it is being deleted and nobody knows the recorded store any
// more: there is nothing to clean up in it.
func (j *Judgement) Abandons() bool { return j.stage == leaves && j.Stray && !j.Claimed }

// Checked means that the plan was made to have all of the owner's record in the store.
func (j *Judgement) Checked() bool { return j.stage == stays && !j.Stuck }
