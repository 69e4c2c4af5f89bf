package plan

import (
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// OwnerAction holds the steps for one owner, possibly none. Intent and Commit make its record a write-ahead log. Intent
// records what may be in the store before the write, and Commit what is there after it.
type OwnerAction struct {
	Evaluation *Evaluation
	// AddFinalizer requests our finalizer on the object.
	AddFinalizer bool
	// Intent is written before the tuples are written and removed, Commit afterwards. Nil means that nothing is to be
	// recorded.
	Intent, Commit *StatusUpdate
	// RemoveFinalizer requests the removal of our finalizer.
	RemoveFinalizer bool
	// NextCondition is the resulting condition.
	NextCondition OwnerCondition
}

// StatusUpdate is a status to write to an owner.
type StatusUpdate struct {
	Record           TupleRecord
	Condition, Ready OwnerCondition
	// StoreID is the store that the condition is about.
	StoreID string
	// Removed is the new record of removed tuples; nil leaves it as it is.
	Removed *corev1alpha1.RemovedTuples
}

func (a OwnerAction) hasWork() bool {
	return a.AddFinalizer || a.Intent != nil || a.Commit != nil || a.RemoveFinalizer
}

func (d *planDraft) newAction(e *Evaluation) OwnerAction {
	next, known := e.finalCondition(d.in.Model)
	a, o := OwnerAction{Evaluation: e, NextCondition: next}, e.Owner
	switch {
	case e.phase == deleted || o.Unwritable:
		return a
	case e.phase == deleting:
		a.RemoveFinalizer = o.HasFinalizer
	default:
		a.AddFinalizer = !o.HasFinalizer && !o.Deleting && (len(e.desired)+len(o.Record.Tuples) > 0 || e.phase == here && o.IsStore && o.Reserved)
	}
	switch {
	case d.touched[e]:
		a.Commit = d.newStatusUpdate(e, e.desired, next)
		a.Intent = d.newStatusUpdate(e, unionByID(e.desired, o.Record.Tuples), e.syncingCondition(d.in.Writer))
		if o.Ready.Unknown { // Only what is done puts an end to that.
			a.Intent.Ready = o.Ready
		}
	case d.in.Model == nil && o.Outdated && o.hasMovedStore(): // The status keeps the store that the tuples came from.
	case e.phase == deleting, !known && o.Condition.Reason != Syncing && o.Ready.Reason != corev1alpha1.BackendUnavailable && !o.isStoreSyncWaiting():
	case next != o.Condition, o.ReadyCondition(next) != o.Ready, d.statusStoreID(e, o.Record.Tuples) != o.StatusStoreID:
		a.Commit = d.newStatusUpdate(e, o.Record.Tuples, next)
	}
	if o.Contested > 0 || a.Commit != nil && slices.ContainsFunc(e.desired, func(t tuple.Tuple) bool { return d.contested[t.ID] }) {
		a.Commit, a.RemoveFinalizer, a.NextCondition = nil, false, e.syncingCondition(d.in.Writer)
	}
	if a.Intent != nil && len(d.write)+len(d.remove) == 0 && a.Intent.isStatusOf(o) {
		a.Intent = nil // The status holds it already, and nothing is left to do.
	}
	return a
}

// isStatusOf reports whether the status of o is u.
func (u *StatusUpdate) isStatusOf(o *Owner) bool {
	return u.Condition == o.Condition && u.StoreID == o.StatusStoreID && u.Record.StoreID == o.Record.StoreID && slices.Equal(u.Record.Tuples, o.Record.Tuples)
}

func (d *planDraft) newStatusUpdate(e *Evaluation, tuples []tuple.Tuple, c OwnerCondition) *StatusUpdate {
	u := &StatusUpdate{Condition: c, Ready: e.Owner.ReadyCondition(c), StoreID: d.statusStoreID(e, tuples)}
	if len(tuples) > corev1alpha1.LongRecord {
		tuples = tuple.SortedUnique(tuples) // Reading returns this order.
	}
	if len(tuples) > 0 {
		u.Record = TupleRecord{StoreID: d.in.StoreID, Tuples: tuples}
	}
	return u
}

// statusStoreID returns the store of the tuples, also if it refuses all of them.
func (d *planDraft) statusStoreID(e *Evaluation, tuples []tuple.Tuple) string {
	if len(tuples) > 0 || e.phase == here && len(e.Owner.Declared) > 0 {
		return d.in.StoreID
	}
	return ""
}
