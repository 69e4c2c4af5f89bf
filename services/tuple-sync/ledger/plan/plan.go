package plan

import (
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// Input is what a plan is made from.
type Input struct {
	// StoreID is the OpenFGA store; empty for owners that have none.
	StoreID string
	Owners  []Owner
	// Writer names this replica.
	Writer string
	// Model of the store; nil while there is none: then nothing is written.
	Model *Model
	// Strays may be in the store although no owner has recorded them.
	Strays []tuple.Tuple
	// Observed is what the store holds of the strays and of the tuples that any owner declares or has
	// recorded, nil when nobody has looked. A plan with it repairs what differs.
	Observed map[tuple.ID]tuple.Tuple
}

// Plan is to be carried out in this order: every action's AddFinalizer, every Intent, Write and
// Remove, every Commit, every RemoveFinalizer. Whoever stops midway plans again.
type Plan struct {
	Actions []Action
	// Write and Remove concern the whole store.
	Write, Remove []tuple.Tuple
}

// Action is what is to be done with one owner, possibly nothing. Intent and Commit make its
// record a write-ahead log: what may be in the store is written down before, what is there after.
type Action struct {
	Evaluation *Evaluation
	// AddFinalizer asks for our finalizer on the object.
	AddFinalizer bool
	// Intent is to be recorded before, Commit after the tuples are written and removed;
	// nil means that there is nothing to record.
	Intent, Commit *StatusUpdate
	// RemoveFinalizer asks to take our finalizer off.
	RemoveFinalizer bool
	// NextCondition is the one that results.
	NextCondition Condition
}

// StatusUpdate is what is written to an owner's status.
type StatusUpdate struct {
	Record           Record
	Condition, Ready Condition
	// StoreID is the store that the status is to name: the one that the condition speaks of.
	StoreID string
}

// Idle means that a plan changes nothing anywhere.
func (p Plan) Idle() bool {
	return len(p.Write) == 0 && len(p.Remove) == 0 && !slices.ContainsFunc(p.Actions, Action.works)
}

// Promises means that an object becomes ready by the plan.
func (p Plan) Promises() bool {
	return slices.ContainsFunc(p.Actions, func(a Action) bool { return a.Commit != nil && a.Commit.Ready.OK })
}

func (a Action) works() bool {
	return a.AddFinalizer || a.Intent != nil || a.Commit != nil || a.RemoveFinalizer
}

// draft is a plan in the making.
type draft struct {
	in      Input
	claims  map[tuple.ID]claim
	touched map[*Evaluation]bool
	write   map[tuple.ID]tuple.Tuple
	remove  map[tuple.ID]tuple.Tuple
	// contested are what another replica may still write or remove.
	contested map[tuple.ID]bool
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
	p := Plan{Write: sorted(d.write), Remove: sorted(d.remove)}
	for _, e := range evaluations {
		if e.phase != unrelated || e.Owner.Unwritable {
			p.Actions = append(p.Actions, d.action(e))
		}
	}
	return p
}

// add plans to write what e desires and may lack. Without a model that is only what is recorded.
func (d *draft) add(e *Evaluation) {
	if e.phase != here || d.in.Model == nil {
		return
	}
	recorded, inStep := set(e.Owner.Record.Tuples), e.Owner.inStep()
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

// drop plans to remove what e no longer desires, unless somebody else does: then it is handed
// over, or the tuple could end up in nobody's record.
func (d *draft) drop(e *Evaluation) {
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
			d.handOver(e, other)
			continue
		}
		if !e.AbandonsRecord() {
			d.takeOut(t)
		}
	}
}

// takeOut plans to remove a tuple that may be there.
func (d *draft) takeOut(t tuple.Tuple) {
	_, there := d.in.Observed[t.ID]
	if (there || d.in.Observed == nil) && t.Validate() == nil {
		d.remove[t.ID] = t
	}
}

// handOver makes the other claimant answer for a tuple that e lets go: not before e's record can be closed.
func (d *draft) handOver(e *Evaluation, other claim) {
	if e.phase == deleted || e.Owner.Contested > 0 {
		return
	}
	d.touched[other.by] = true
	if d.in.Model != nil && d.in.Observed[other.ID] != other.Tuple {
		d.write[other.ID] = other.Tuple
	}
}

func (d *draft) action(e *Evaluation) Action {
	next, known := e.condition(d.in.Model)
	a, o := Action{Evaluation: e, NextCondition: next}, e.Owner
	switch {
	case e.phase == deleted || o.Unwritable:
		return a
	case e.phase == deleting:
		a.RemoveFinalizer = o.HasFinalizer
	default:
		a.AddFinalizer = !o.HasFinalizer && !o.Deleting && len(e.desired)+len(o.Record.Tuples) > 0
	}
	switch {
	case d.touched[e]:
		a.Commit = d.update(e, e.desired, next)
		if !e.AbandonsRecord() {
			a.Intent = d.update(e, union(e.desired, o.Record.Tuples), e.syncing(d.in.Writer))
			if o.Ready.Unknown { // Only what is done puts an end to that.
				a.Intent.Ready = o.Ready
			}
		}
	case d.in.Model == nil && o.Outdated && o.moved(): // It stays known where its tuples come from.
	case e.phase == deleting, !known && o.Condition.Reason != Syncing && !o.waits():
	case next != o.Condition, o.Sum(next) != o.Ready, d.statusStore(e, o.Record.Tuples) != o.StatusStoreID:
		a.Commit = d.update(e, o.Record.Tuples, next)
	}
	if o.Contested > 0 || a.Commit != nil && slices.ContainsFunc(e.desired, func(t tuple.Tuple) bool { return d.contested[t.ID] }) {
		a.Commit, a.RemoveFinalizer, a.NextCondition = nil, false, e.syncing(d.in.Writer)
	}
	if a.Intent != nil && len(d.write)+len(d.remove) == 0 && a.Intent.isOf(o) {
		a.Intent = nil // It was announced before, and nothing is left to do.
	}
	return a
}

// isOf reports whether the status of o is u.
func (u *StatusUpdate) isOf(o *Owner) bool {
	return u.Condition == o.Condition && u.StoreID == o.StatusStoreID && u.Record.StoreID == o.Record.StoreID && slices.Equal(u.Record.Tuples, o.Record.Tuples)
}

func (d *draft) update(e *Evaluation, tuples []tuple.Tuple, c Condition) *StatusUpdate {
	u := &StatusUpdate{Condition: c, Ready: e.Owner.Sum(c), StoreID: d.statusStore(e, tuples)}
	if len(tuples) > corev1alpha1.LongRecord {
		tuples = tuple.Sorted(tuples) // As it is read again.
	}
	if len(tuples) > 0 {
		u.Record = Record{StoreID: d.in.StoreID, Tuples: tuples}
	}
	return u
}

// statusStore is the store with the tuples, or the one that refuses them all.
func (d *draft) statusStore(e *Evaluation, tuples []tuple.Tuple) string {
	if len(tuples) > 0 || e.phase == here && len(e.Owner.Declared) > 0 {
		return d.in.StoreID
	}
	return ""
}

// union lists first, and what of second has another ID.
func union(first, second []tuple.Tuple) []tuple.Tuple {
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

func sorted(tuples map[tuple.ID]tuple.Tuple) []tuple.Tuple {
	list := make([]tuple.Tuple, 0, len(tuples))
	for _, t := range tuples {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b tuple.Tuple) int { return a.ID.Compare(b.ID) })
	return list
}
