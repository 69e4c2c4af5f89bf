package plan

import "slices"

// Input is what a plan is made from.
type Input struct {
	// StoreID is the OpenFGA store; empty for owners that have none.
	StoreID string
	Owners  []Owner
	// Model of the store; nil while there is none: then nothing is written.
	Model *Model
	// Found is what the store holds of the tuples that any owner declares or has recorded,
	// nil when nobody has looked. A plan with it repairs what differs.
	Found map[ID]Tuple
}

// Plan is to be carried out in this order: every step's Hold, every step's Before, Write
// and Remove, every step's After, every step's Release. Whoever stops midway plans again.
type Plan struct {
	Steps []Step
	// Write and Remove concern the whole store.
	Write, Remove []Tuple
}

// Step is what is to be done with one owner, possibly nothing.
type Step struct {
	*Judgement
	// Hold asks for our finalizer on the object.
	Hold bool
	// Before is to be recorded before, After after the tuples are written and removed;
	// nil means that there is nothing to record.
	Before, After *Entry
	// Release asks to take our finalizer off.
	Release bool
	// Says is the condition that results.
	Says Condition
}

// Entry is what is written to an owner's status.
type Entry struct {
	Record    Record
	Condition Condition
	// Named is the store that the status is to name: the one that the condition speaks of.
	Named string
}

// Idle means that a plan changes nothing anywhere.
func (p Plan) Idle() bool {
	return len(p.Write) == 0 && len(p.Remove) == 0 && !slices.ContainsFunc(p.Steps, Step.works)
}

func (s Step) works() bool { return s.Hold || s.Before != nil || s.After != nil || s.Release }

// draft is a plan in the making.
type draft struct {
	Input
	claims  map[ID]claim
	touched map[*Judgement]bool
	write   map[ID]Tuple
	remove  map[ID]Tuple
}

// Make decides what to do in one store.
func Make(in Input) Plan {
	judgements, claims := judge(in.StoreID, in.Owners, in.Model)
	d := draft{Input: in, claims: claims, touched: map[*Judgement]bool{}, write: map[ID]Tuple{}, remove: map[ID]Tuple{}}
	for _, j := range judgements {
		d.add(j)
		d.drop(j)
	}
	p := Plan{Write: sorted(d.write), Remove: sorted(d.remove)}
	for _, j := range judgements {
		if j.stage != absent || j.Stuck {
			p.Steps = append(p.Steps, d.step(j))
		}
	}
	return p
}

// add plans to write what j wants and may lack. Without a model j wants only what is recorded.
func (d *draft) add(j *Judgement) {
	if j.stage != stays || d.Model == nil {
		return
	}
	recorded, settled := set(j.Record.Tuples), j.settled()
	for _, t := range j.wants {
		_, there := recorded[t]
		missing := !there || !settled
		if d.Found != nil {
			missing = d.Found[t.ID] != t
		}
		if missing {
			d.write[t.ID] = t
		}
		if missing || !there {
			d.touched[j] = true
		}
	}
}

// drop plans to remove what j no longer wants, unless somebody else does: then that one
// is made to vouch for it, or the tuple could end up in nobody's record.
func (d *draft) drop(j *Judgement) {
	if j.stage == absent {
		return
	}
	wants := make(map[ID]struct{}, len(j.wants))
	for _, t := range j.wants {
		wants[t.ID] = struct{}{}
	}
	// A record may list one ID with two conditions.
	d.touched[j] = d.touched[j] || len(wants) < len(j.Record.Tuples)
	for _, t := range j.Record.Tuples {
		if _, ok := wants[t.ID]; ok {
			continue
		}
		d.touched[j] = true
		if other, ok := d.claims[t.ID]; ok {
			d.vouch(j, other)
			continue
		}
		_, there := d.Found[t.ID]
		if (there || d.Found == nil) && !j.Abandons() && malformed(t) == nil {
			d.remove[t.ID] = t
		}
	}
}

func (d *draft) vouch(j *Judgement, other claim) {
	if j.stage == gone {
		return
	}
	d.touched[other.by] = true
	if d.Model != nil {
		d.write[other.ID] = other.Tuple
	}
}

func (d *draft) step(j *Judgement) Step {
	says, said := j.condition(d.Model)
	s := Step{Judgement: j, Says: says}
	switch {
	case j.stage == gone || j.Stuck:
		return s
	case j.stage == leaves:
		s.Release = j.Held
	default:
		s.Hold = !j.Held && !j.Deleting && len(j.wants)+len(j.Record.Tuples) > 0
	}
	switch {
	case d.touched[j]:
		s.After = d.entry(j, j.wants, says)
		if !j.Abandons() {
			s.Before = d.entry(j, union(j.wants, j.Record.Tuples), j.syncing())
		}
	case j.stage == leaves, !said && j.Condition.Reason != Syncing:
	case says != j.Condition, d.named(j, j.Record.Tuples) != j.Named:
		s.After = d.entry(j, j.Record.Tuples, says)
	}
	return s
}

func (d *draft) entry(j *Judgement, tuples []Tuple, says Condition) *Entry {
	return &Entry{Record: d.record(tuples), Condition: says, Named: d.named(j, tuples)}
}

// named is the store with the tuples, or the one that refuses them all.
func (d *draft) named(j *Judgement, tuples []Tuple) string {
	if len(tuples) > 0 || j.stage == stays && len(j.Declared) > 0 {
		return d.StoreID
	}
	return ""
}

func (d *draft) record(tuples []Tuple) Record {
	if len(tuples) == 0 {
		return Record{}
	}
	return Record{StoreID: d.StoreID, Tuples: tuples}
}

// union lists first, and what of second has another ID.
func union(first, second []Tuple) []Tuple {
	ids := make(map[ID]struct{}, len(first))
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

func sorted(tuples map[ID]Tuple) []Tuple {
	list := make([]Tuple, 0, len(tuples))
	for _, t := range tuples {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b Tuple) int { return compareIDs(a.ID, b.ID) })
	return list
}
