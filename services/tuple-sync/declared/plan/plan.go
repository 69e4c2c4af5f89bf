package plan

import (
	"slices"
	"time"

	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// Input is the input of a plan.
type Input struct {
	// StoreID is the OpenFGA store; empty for an owner without one.
	StoreID string
	Owners  []Owner
	// Reserved means that the store is that of IAM.
	Reserved bool
	// Writer names this replica.
	Writer string
	// Model is the model of the store. Without one nothing is written.
	Model *Model
	// Strays lists tuples that may be in the store although no record lists them.
	Strays []tuple.Tuple
	// Observed holds what the store has of the strays, the recorded removals, and all declared and recorded tuples. It
	// is nil if the store was not read. A plan with it repairs differences.
	Observed map[tuple.ID]tuple.Tuple
	// Written is when OpenFGA wrote each observed tuple.
	Written map[tuple.ID]time.Time
	// Removals holds the recorded removals of the store. They are read with Observed.
	Removals RemovedTuples
}

// Plan is executed in this order: every AddFinalizer, every Intent, Write and Remove, every Commit, every
// RemoveFinalizer. After an error a new plan is made.
type Plan struct {
	Actions []OwnerAction
	// Write and Remove concern the whole store.
	Write, Remove []tuple.Tuple
	// Restored lists the tuples of Remove that were removed before, and that a restore brought back.
	Restored []tuple.ID

	claims map[tuple.ID]tupleClaim
}

// IsIdle reports whether a plan changes nothing.
func (p Plan) IsIdle() bool {
	return len(p.Write) == 0 && len(p.Remove) == 0 && !slices.ContainsFunc(p.Actions, OwnerAction.hasWork)
}

// CanMakeReady reports whether an object becomes ready by the plan.
func (p Plan) CanMakeReady() bool {
	return slices.ContainsFunc(p.Actions, func(a OwnerAction) bool { return a.Commit != nil && a.Commit.Ready.OK })
}

// DecideStore returns the plan for one store.
func DecideStore(in Input) Plan {
	evaluations, claims := evaluateOwners(in.StoreID, in.Owners, in.Model)
	d := planDraft{
		in: in, claims: claims, touched: map[*Evaluation]bool{},
		write: map[tuple.ID]tuple.Tuple{}, remove: map[tuple.ID]tuple.Tuple{}, contested: map[tuple.ID]bool{},
	}
	for _, e := range evaluations {
		d.planWrites(e)
		d.planRemovals(e)
		if e.Owner.Contested > 0 {
			for _, t := range e.Owner.Record.Tuples {
				d.contested[t.ID] = true
			}
		}
	}
	for _, t := range in.Strays {
		if _, wanted := claims[t.ID]; !wanted {
			d.removeIfPresent(t)
		}
	}
	p := Plan{claims: claims}
	for id := range in.restoredTuples(evaluations, claims) {
		if _, goes := d.remove[id]; !goes {
			d.removeIfPresent(in.Observed[id])
			p.Restored = append(p.Restored, id)
		}
	}
	p.Write, p.Remove = sortTuples(d.write), sortTuples(d.remove)
	for _, e := range evaluations {
		if e.phase != unrelated || e.Owner.Unwritable {
			p.Actions = append(p.Actions, d.newAction(e))
		}
	}
	return p
}

func sortTuples(tuples map[tuple.ID]tuple.Tuple) []tuple.Tuple {
	list := make([]tuple.Tuple, 0, len(tuples))
	for _, t := range tuples {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b tuple.Tuple) int { return a.ID.Compare(b.ID) })
	return list
}
