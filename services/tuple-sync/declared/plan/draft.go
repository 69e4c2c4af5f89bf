package plan

import (
	"slices"

	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// planDraft is an unfinished plan.
type planDraft struct {
	in      Input
	claims  map[tuple.ID]tupleClaim
	touched map[*Evaluation]bool
	write   map[tuple.ID]tuple.Tuple
	remove  map[tuple.ID]tuple.Tuple
	// contested holds tuples that another replica may still write or remove.
	contested map[tuple.ID]bool
}

// planWrites plans to write the desired tuples of e that may be missing. Without a model it adds none.
func (d *planDraft) planWrites(e *Evaluation) {
	if e.phase != here || d.in.Model == nil {
		return
	}
	recorded, inStep := tupleSet(e.Owner.Record.Tuples), e.Owner.isRecordInStore()
	for _, t := range e.desired {
		_, there := recorded[t]
		missing := !there || !inStep
		if d.in.Observed != nil {
			missing = d.in.Observed[t.ID] != t
		}
		if missing {
			d.write[t.ID] = t
		}
		if missing || !there {
			d.touched[e] = true
		}
	}
}

// planRemovals plans to remove recorded tuples that e no longer desires. A tuple that another owner claims is handed over
// instead. Otherwise no record might list it.
func (d *planDraft) planRemovals(e *Evaluation) {
	if e.phase == unrelated {
		return
	}
	desired := make(map[tuple.ID]struct{}, len(e.desired))
	for _, t := range e.desired {
		desired[t.ID] = struct{}{}
	}
	// A record may list one ID with two conditions.
	d.touched[e] = d.touched[e] || len(desired) < len(e.Owner.Record.Tuples)
	for _, t := range e.Owner.Record.Tuples {
		if _, ok := desired[t.ID]; ok {
			continue
		}
		d.touched[e] = true
		if other, ok := d.claims[t.ID]; ok {
			d.transferTuple(e, other)
			continue
		}
		d.removeIfPresent(t)
	}
}

// removeIfPresent plans to remove a tuple that may exist.
func (d *planDraft) removeIfPresent(t tuple.Tuple) {
	_, there := d.in.Observed[t.ID]
	if (there || d.in.Observed == nil) && t.Validate() == nil {
		d.remove[t.ID] = t
	}
}

// transferTuple makes the other claimant record a tuple that e gives up. It does nothing before e's record can be closed.
func (d *planDraft) transferTuple(e *Evaluation, other tupleClaim) {
	if e.phase == deleted || e.Owner.Contested > 0 {
		return
	}
	d.touched[other.by] = true
	if d.in.Model != nil && d.in.Observed[other.ID] != other.Tuple {
		d.write[other.ID] = other.Tuple
	}
}

// unionByID returns first, and the tuples of second with other IDs.
func unionByID(first, second []tuple.Tuple) []tuple.Tuple {
	ids := make(map[tuple.ID]struct{}, len(first))
	for _, t := range first {
		ids[t.ID] = struct{}{}
	}
	all := slices.Clip(first)
	for _, t := range second {
		if _, ok := ids[t.ID]; !ok {
			ids[t.ID] = struct{}{}
			all = append(all, t)
		}
	}
	return all
}
