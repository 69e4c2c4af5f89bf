package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// UndeclaredFate is the future of a tuple that a store holds and no object declares.
type UndeclaredFate int

// Fates.
const (
	// Unmanaged tuples are in no record: other software wrote them, and they stay.
	Unmanaged UndeclaredFate = iota
	// ToBeRemoved tuples are recorded or restored, and will be removed.
	ToBeRemoved
	// ToBeReplaced tuples are declared with another condition.
	ToBeReplaced
	// Contested tuples are in a record that a replica executes, or may still execute. They are removed afterwards.
	Contested
	// Kept tuples are recorded, and stay until the declared tuples of the store are known again.
	Kept
)

// UndeclaredTuple is a tuple that a store holds and no object declares.
type UndeclaredTuple struct {
	tuple.Tuple
	Fate UndeclaredFate
	// Recorders lists the owners that record the tuple.
	Recorders []*Owner
	// Reason explains the fate to people.
	Reason string
}

// FindUndeclaredTuples returns the held tuples that no object declares, and what [DecideStore] plans for them. It also
// returns restored tuples whose declaration is not in force.
func FindUndeclaredTuples(in Input, held []tuple.Tuple) []UndeclaredTuple {
	evaluations, claims := evaluateOwners(in.StoreID, in.Owners, in.Model)
	declared, recorders := in.indexOwners(evaluations)
	var found []UndeclaredTuple
	restored := in.restoredTuples(evaluations, claims)
	for _, t := range held {
		r, isRestored := restored[t.ID]
		if _, ok := declared[t]; (!ok || isRestored) && (!in.Reserved || !iam.IsIAMObject(t.Object)) {
			u := decideUndeclaredTuple(t, claims, recorders[t.ID], in.Model)
			if isRestored && u.Fate == Unmanaged {
				u.Fate = ToBeRemoved
				u.Reason = fmt.Sprintf("Restored: it was removed on %s, and the next resync removes it again.", r.Removed.UTC().Format(time.DateOnly))
			}
			found = append(found, u)
		}
	}
	return found
}

// indexOwners returns the tuples that owners declare for the store, and the owners that record each tuple.
func (in Input) indexOwners(evaluations []*Evaluation) (declared map[tuple.Tuple]struct{}, recorders map[tuple.ID][]*Evaluation) {
	declared, recorders = map[tuple.Tuple]struct{}{}, map[tuple.ID][]*Evaluation{}
	for _, e := range evaluations {
		if e.Owner.isDeclaringFor(in.StoreID) {
			for _, t := range e.Owner.Declared {
				declared[t] = struct{}{}
			}
		}
		if e.phase != unrelated {
			for _, t := range e.Owner.Record.Tuples {
				recorders[t.ID] = append(recorders[t.ID], e)
			}
		}
	}
	return declared, recorders
}

// isDeclaringFor reports whether the owner's declared tuples belong to a store, written or not.
func (o *Owner) isDeclaringFor(storeID string) bool {
	return o.TargetStoreID == storeID && !o.Deleted && (!o.Deleting || o.HasDependents)
}

// decideUndeclaredTuple decides on one tuple, given the evaluations of the owners that record it.
func decideUndeclaredTuple(t tuple.Tuple, claims map[tuple.ID]tupleClaim, recorders []*Evaluation, model *Model) UndeclaredTuple {
	u := UndeclaredTuple{Tuple: t}
	for _, e := range recorders {
		u.Recorders = append(u.Recorders, e.Owner)
	}
	other, claimed := claims[t.ID]
	contest := slices.IndexFunc(u.Recorders, func(o *Owner) bool { return !o.Deleted && o.Condition.Reason == Syncing })
	switch {
	case contest >= 0:
		u.Fate, u.Reason = Contested, u.Recorders[contest].Condition.Message
	case claimed && other.by.phase == here && model != nil:
		u.Fate, u.Reason = ToBeReplaced, fmt.Sprintf("%s declares it with another condition.", other.by.Owner.Key)
	case claimed:
		u.Fate, u.Reason = Kept, fmt.Sprintf("The present tuples of %s for this store are not known yet.", other.by.Owner.Key)
	case len(recorders) > 0:
		u.Fate, u.Reason = ToBeRemoved, removalReason(recorders[0])
	default:
		u.Reason = "Other software wrote it, and tuple-sync leaves it alone."
	}
	return u
}

// removalReason returns why an owner no longer desires a recorded tuple.
func removalReason(e *Evaluation) string {
	switch e.phase {
	case deleted:
		return "The object that declared it was deleted."
	case deleting:
		return "The object that declared it is being deleted."
	case leaving:
		return "The object that declared it refers to another Store now."
	default:
		return "The object does not declare it any more."
	}
}
