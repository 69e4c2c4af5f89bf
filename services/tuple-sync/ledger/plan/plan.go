package plan

import (
	"slices"
	"time"

	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// Input is what a plan is made from.
type Input struct {
	// StoreID is the OpenFGA store; empty for owners that have none.
	StoreID string
	Owners  []Owner
	// Reserved means that the store is that of IAM.
	Reserved bool
	// Writer names this replica.
	Writer string
	// Model of the store; nil while there is none: then nothing is written.
	Model *Model
	// Strays may be in the store although no owner has recorded them.
	Strays []tuple.Tuple
	// Observed is what the store holds of the strays and of the tuples that any owner declares or has
	// recorded, nil when nobody has looked. A plan with it repairs what differs.
	Observed map[tuple.ID]tuple.Tuple
	// Written is when OpenFGA wrote each observed tuple.
	Written map[tuple.ID]time.Time
	// Removals are recorded for the store. They are read with Observed.
	Removals Removals
}

// Plan is to be carried out in this order: every action's AddFinalizer, every Intent, Write and
// Remove, every Commit, every RemoveFinalizer. Whoever stops midway plans again.
type Plan struct {
	Actions []Action
	// Write and Remove concern the whole store.
	Write, Remove []tuple.Tuple
	// Restored are those of Remove that were removed before, and are there again as they were.
	Restored []tuple.ID

	claims map[tuple.ID]claim
}

// Idle means that a plan changes nothing anywhere.
func (p Plan) Idle() bool {
	return len(p.Write) == 0 && len(p.Remove) == 0 && !slices.ContainsFunc(p.Actions, Action.works)
}

// Promises means that an object becomes ready by the plan.
func (p Plan) Promises() bool {
	return slices.ContainsFunc(p.Actions, func(a Action) bool { return a.Commit != nil && a.Commit.Ready.OK })
}

// Make decides what to do in one store.
func Make(in Input) Plan {
	evaluations, claims := evaluate(in.StoreID, in.Owners, in.Model)
	d := draft{
		in: in, claims: claims, touched: map[*Evaluation]bool{},
		write: map[tuple.ID]tuple.Tuple{}, remove: map[tuple.ID]tuple.Tuple{}, contested: map[tuple.ID]bool{},
	}
	for _, e := range evaluations {
		d.add(e)
		d.drop(e)
		if e.Owner.Contested > 0 {
			for _, t := range e.Owner.Record.Tuples {
				d.contested[t.ID] = true
			}
		}
	}
	for _, t := range in.Strays {
		if _, wanted := claims[t.ID]; !wanted {
			d.takeOut(t)
		}
	}
	p := Plan{claims: claims}
	for id := range in.restored(evaluations, claims) {
		if _, goes := d.remove[id]; !goes {
			d.takeOut(in.Observed[id])
			p.Restored = append(p.Restored, id)
		}
	}
	p.Write, p.Remove = sorted(d.write), sorted(d.remove)
	for _, e := range evaluations {
		if e.phase != unrelated || e.Owner.Unwritable {
			p.Actions = append(p.Actions, d.action(e))
		}
	}
	return p
}

func sorted(tuples map[tuple.ID]tuple.Tuple) []tuple.Tuple {
	list := make([]tuple.Tuple, 0, len(tuples))
	for _, t := range tuples {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b tuple.Tuple) int { return a.ID.Compare(b.ID) })
	return list
}
