package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/precedence"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// State is the result for a declared tuple.
type State int

// States.
const (
	// Accepted tuples should be in the store.
	Accepted State = iota
	// Waiting tuples may be accepted once their store or module exists.
	Waiting
	// Refused tuples need a correction.
	Refused
)

// Verdict is the decision on one declared tuple.
type Verdict struct {
	tuple.Tuple
	State  State
	Reason string

	// recorded means that the owner's record lists exactly this tuple.
	recorded bool
}

// Evaluation is the decision on one owner.
type Evaluation struct {
	Owner *Owner
	// Verdicts holds the decisions in the order of Declared.
	Verdicts []Verdict

	phase phase
	// desired lists the tuples that the store should hold for the owner.
	desired []tuple.Tuple
}

// claim is a tuple that an owner desires.
type claim struct {
	tuple.Tuple
	by       *Evaluation
	recorded bool
}

// beats reports whether c is stronger than a claim to the same ID with another condition. Recorded tuples of an owner
// whose store is unknown cannot be beaten.
func (c claim) beats(o claim) bool {
	return o.by.phase == here && precedence.Compare(c.by.claimTo(c.recorded), o.by.claimTo(o.recorded)) < 0
}

var (
	errNoStore   = errors.New("the Store has no OpenFGA store yet")
	errElsewhere = errors.New("the object's tuples are still in another store")
	errNoModel   = errors.New("the store has no model yet")
	errOutdated  = errors.New("the object's module is not live as it is now: what it adds waits for that")
	errTwice     = errors.New("the same tuple is declared above with another condition: keep one of them")
	errTooLarge  = errors.New("the object would become too large with its record in status.managedTuples: move tuples to another AuthorizationModel")
	errDeleting  = errors.New("the object is being deleted")
	errReserved  = errors.New("ReservedType: tuples of this type follow from roles, bindings, groups and users alone; use a PolicyBinding")
	errOwner     = errors.New("ReservedType: only the Store itself says whose it is")
	errOtherSays = errors.New("the same tuple is declared with another condition")
)

// maxObject bounds the size of an object, in bytes: the API server's limit less a margin.
const maxObject = 1536*1024 - 64*1024

// Evaluate decides on every owner of a store. If two contradict each other, the stronger claim wins; see package
// precedence. Without a model, recorded tuples stay and new ones wait.
func Evaluate(storeID string, owners []Owner, model *Model) []*Evaluation {
	evaluations, _ := evaluate(storeID, owners, model)
	return evaluations
}

func evaluate(storeID string, owners []Owner, model *Model) ([]*Evaluation, map[tuple.ID]claim) {
	all := make([]*Evaluation, len(owners))
	claims := map[tuple.ID]claim{}
	for i := range owners {
		all[i] = &Evaluation{Owner: &owners[i], phase: owners[i].phase(storeID)}
	}
	slices.SortFunc(all, func(a, b *Evaluation) int { return precedence.Compare(a.claimTo(false), b.claimTo(false)) })
	for _, e := range all {
		if e.phase == storeUnknown {
			e.keep(claims)
		}
	}
	for _, e := range all {
		switch {
		case e.phase == here:
			e.decide(model)
			e.claimAccepted(claims)
		case e.phase == noStore:
			e.wait(errNoStore)
		case e.phase == unrelated && e.Owner.TargetStoreID == storeID && !e.Owner.Deleting:
			e.wait(errElsewhere)
		}
	}
	for _, e := range all {
		if e.phase == here {
			e.yield(claims)
		}
	}
	return all, claims
}

// keep makes the owner desire everything recorded.
func (e *Evaluation) keep(claims map[tuple.ID]claim) {
	e.desired = e.Owner.Record.Tuples
	for _, t := range e.desired {
		e.claim(claims, t, true)
	}
}

// claimAccepted claims the tuples accepted so far.
func (e *Evaluation) claimAccepted(claims map[tuple.ID]claim) {
	for _, v := range e.Verdicts {
		if v.State == Accepted {
			e.claim(claims, v.Tuple, v.recorded)
		}
	}
}

func (e *Evaluation) wait(why error) {
	for _, t := range e.Owner.Declared {
		e.Verdicts = append(e.Verdicts, Verdict{Tuple: t, State: Waiting, Reason: why.Error()})
	}
}

// Written returns the tuples in the store for the owner, if its record is in step.
func (e *Evaluation) Written() map[tuple.Tuple]struct{} {
	if !e.Owner.inStep() {
		return nil
	}
	return set(e.Owner.Record.Tuples)
}

// KeepsRecord reports whether the plan puts the owner's whole record into the store.
func (e *Evaluation) KeepsRecord() bool { return e.phase == here && !e.Owner.Unwritable }

// claimTo returns the owner's claim to a tuple.
func (e *Evaluation) claimTo(recorded bool) precedence.Claim {
	c := precedence.Claim{
		Core: e.Owner.IsStore, Live: precedence.None, Created: e.Owner.Created, Name: e.Owner.Key.Tokens() + "\x00" + e.Owner.UID,
	}
	if recorded {
		c.Live = precedence.Present
	}
	return c
}

// claim adds the owner's claim to a tuple, unless an equal or stronger one exists.
func (e *Evaluation) claim(claims map[tuple.ID]claim, t tuple.Tuple, recorded bool) {
	c := claim{t, e, recorded}
	if other, taken := claims[t.ID]; !taken || other.Tuple != t && c.beats(other) {
		claims[t.ID] = c
	}
}

// yield refuses accepted tuples with a stronger claim of another owner. The owner desires the rest.
func (e *Evaluation) yield(claims map[tuple.ID]claim) {
	for i := range e.Verdicts {
		v := &e.Verdicts[i]
		if v.State != Accepted {
			continue
		}
		if winner := claims[v.ID]; winner.Tuple == v.Tuple {
			e.desired = append(e.desired, v.Tuple)
		} else {
			v.refuse(fmt.Errorf("%w by %s: change one of them", errOtherSays, winner.by.Owner.Key))
		}
	}
}

// decide decides on each declared tuple without regard to other owners.
func (e *Evaluation) decide(model *Model) {
	recorded := set(e.Owner.Record.Tuples)
	declared := make(map[tuple.ID]struct{}, len(e.Owner.Declared))
	room := e.room()
	for _, t := range e.Owner.Declared {
		v := Verdict{Tuple: t}
		_, twice := declared[t.ID]
		declared[t.ID] = struct{}{}
		_, v.recorded = recorded[t]
		switch err := t.Validate(); {
		case e.Owner.Reserved && iam.OwnsObject(t.Object):
			v.refuse(errReserved)
		case e.Owner.claimsStore(t):
			v.refuse(errOwner)
		case err != nil:
			v.refuse(err)
		case twice:
			v.refuse(errTwice)
		case model == nil && !v.recorded:
			v.State, v.Reason = Waiting, errNoModel.Error()
		case e.Owner.Outdated && !v.recorded && !e.Owner.moved():
			v.State, v.Reason = Waiting, errOutdated.Error()
		case e.Owner.Deleting && !e.Owner.HasFinalizer && !v.recorded:
			v.refuse(errDeleting)
		case model != nil:
			e.ask(model, &v)
		}
		if v.State == Accepted && !v.recorded {
			if room -= t.Size(); room < 0 {
				v.refuse(errTooLarge)
			}
		}
		e.Verdicts = append(e.Verdicts, v)
	}
}

// ask validates a tuple against the model. Until the owner's module is live, an invalid tuple waits.
func (e *Evaluation) ask(model *Model, v *Verdict) {
	err := model.Validate(v.Tuple)
	if err == nil {
		return
	}
	v.refuse(err)
	if !e.Owner.ModuleLive {
		v.State = Waiting
	}
}

func (v *Verdict) refuse(err error) { v.State, v.Reason = Refused, err.Error() }

// room returns how many bytes of records the object can still hold.
func (e *Evaluation) room() int {
	room := maxObject - e.Owner.Size
	for _, tuples := range [][]tuple.Tuple{e.Owner.Declared, e.Owner.Record.Tuples} {
		for _, t := range tuples {
			room -= t.Size()
		}
	}
	return room
}

func set(tuples []tuple.Tuple) map[tuple.Tuple]struct{} {
	s := make(map[tuple.Tuple]struct{}, len(tuples))
	for _, t := range tuples {
		s[t] = struct{}{}
	}
	return s
}
