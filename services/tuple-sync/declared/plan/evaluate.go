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

// isStronger reports whether c is stronger than a claim to the same ID with another condition. Recorded tuples of an owner
// whose store is unknown cannot be beaten.
func (c claim) isStronger(o claim) bool {
	return o.by.phase == here && precedence.Compare(c.by.claimTo(c.recorded), o.by.claimTo(o.recorded)) < 0
}

var (
	errNoStore   = errors.New("the Store has no OpenFGA store yet")
	errElsewhere = errors.New("tuples of the object are still in another store")
	errNoModel   = errors.New("the store has no model yet")
	errOutdated  = errors.New("the present text of the module is not in force; new tuples wait for it")
	errTwice     = errors.New("the same tuple is declared above with another condition: keep one of them")
	errTooLarge  = errors.New("the object would become too large with its record in status.managedTuples: move tuples to another AuthorizationModel")
	errDeleting  = errors.New("the object is being deleted")
	errReserved  = errors.New("ReservedType: tuples of this type follow from roles, bindings, groups and users alone; use a PolicyBinding")
	errOwner     = errors.New("ReservedType: only spec.tuples of the Store may declare its owner")
	errOtherSays = errors.New("the same tuple is declared with another condition")
)

// maxObject bounds the size of an object, in bytes: the API server's limit less a margin.
const maxObject = 1536*1024 - 64*1024

// Evaluate decides on every owner of a store. If two contradict each other, the stronger claim wins; see package
// precedence. Without a model, recorded tuples stay and new ones wait.
func Evaluate(storeID string, owners []Owner, model *Model) []*Evaluation {
	evaluations, _ := evaluateOwners(storeID, owners, model)
	return evaluations
}

func evaluateOwners(storeID string, owners []Owner, model *Model) ([]*Evaluation, map[tuple.ID]claim) {
	all := make([]*Evaluation, len(owners))
	claims := map[tuple.ID]claim{}
	for i := range owners {
		all[i] = &Evaluation{Owner: &owners[i], phase: owners[i].phaseFor(storeID)}
	}
	slices.SortFunc(all, func(a, b *Evaluation) int { return precedence.Compare(a.claimTo(false), b.claimTo(false)) })
	for _, e := range all {
		if e.phase == storeUnknown {
			e.keepRecorded(claims)
		}
	}
	for _, e := range all {
		switch {
		case e.phase == here:
			e.decideTuples(model)
			e.claimAccepted(claims)
		case e.phase == noStore:
			e.waitFor(errNoStore)
		case e.phase == unrelated && e.Owner.TargetStoreID == storeID && !e.Owner.Deleting:
			e.waitFor(errElsewhere)
		}
	}
	for _, e := range all {
		if e.phase == here {
			e.yieldClaims(claims)
		}
	}
	return all, claims
}

// keepRecorded makes the owner desire everything recorded.
func (e *Evaluation) keepRecorded(claims map[tuple.ID]claim) {
	e.desired = e.Owner.Record.Tuples
	for _, t := range e.desired {
		e.addClaim(claims, t, true)
	}
}

// claimAccepted claims the tuples accepted so far.
func (e *Evaluation) claimAccepted(claims map[tuple.ID]claim) {
	for _, v := range e.Verdicts {
		if v.State == Accepted {
			e.addClaim(claims, v.Tuple, v.recorded)
		}
	}
}

func (e *Evaluation) waitFor(why error) {
	for _, t := range e.Owner.Declared {
		e.Verdicts = append(e.Verdicts, Verdict{Tuple: t, State: Waiting, Reason: why.Error()})
	}
}

// Written returns the tuples in the store for the owner, if its record is in step.
func (e *Evaluation) Written() map[tuple.Tuple]struct{} {
	if !e.Owner.inStep() {
		return nil
	}
	return tupleSet(e.Owner.Record.Tuples)
}

// HasWholeRecord reports whether the plan puts the owner's whole record into the store.
func (e *Evaluation) HasWholeRecord() bool { return e.phase == here && !e.Owner.Unwritable }

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

// addClaim adds the owner's claim to a tuple, unless an equal or stronger one exists.
func (e *Evaluation) addClaim(claims map[tuple.ID]claim, t tuple.Tuple, recorded bool) {
	c := claim{t, e, recorded}
	if other, taken := claims[t.ID]; !taken || other.Tuple != t && c.isStronger(other) {
		claims[t.ID] = c
	}
}

// yieldClaims refuses accepted tuples with a stronger claim of another owner. The owner desires the rest.
func (e *Evaluation) yieldClaims(claims map[tuple.ID]claim) {
	for i := range e.Verdicts {
		v := &e.Verdicts[i]
		if v.State != Accepted {
			continue
		}
		if winner := claims[v.ID]; winner.Tuple == v.Tuple {
			e.desired = append(e.desired, v.Tuple)
		} else {
			v.setRefused(fmt.Errorf("%w by %s: change one of them", errOtherSays, winner.by.Owner.Key))
		}
	}
}

// decideTuples decides on each declared tuple without regard to other owners.
func (e *Evaluation) decideTuples(model *Model) {
	recorded := tupleSet(e.Owner.Record.Tuples)
	declared := make(map[tuple.ID]struct{}, len(e.Owner.Declared))
	room := e.recordRoom()
	for _, t := range e.Owner.Declared {
		v := Verdict{Tuple: t}
		_, twice := declared[t.ID]
		declared[t.ID] = struct{}{}
		_, v.recorded = recorded[t]
		switch err := t.Validate(); {
		case e.Owner.Reserved && iam.IsOwnObject(t.Object):
			v.setRefused(errReserved)
		case e.Owner.isClaimingStore(t):
			v.setRefused(errOwner)
		case err != nil:
			v.setRefused(err)
		case twice:
			v.setRefused(errTwice)
		case model == nil && !v.recorded:
			v.State, v.Reason = Waiting, errNoModel.Error()
		case e.Owner.Outdated && !v.recorded && !e.Owner.hasMoved():
			v.State, v.Reason = Waiting, errOutdated.Error()
		case e.Owner.Deleting && !e.Owner.HasFinalizer && !v.recorded:
			v.setRefused(errDeleting)
		case model != nil:
			e.validateTuple(model, &v)
		}
		if v.State == Accepted && !v.recorded {
			if room -= t.Size(); room < 0 {
				v.setRefused(errTooLarge)
			}
		}
		e.Verdicts = append(e.Verdicts, v)
	}
}

// validateTuple validates a tuple against the model. Until the owner's module is live, an invalid tuple waits.
func (e *Evaluation) validateTuple(model *Model, v *Verdict) {
	err := model.Validate(v.Tuple)
	if err == nil {
		return
	}
	v.setRefused(err)
	if !e.Owner.ModuleLive {
		v.State = Waiting
	}
}

func (v *Verdict) setRefused(err error) { v.State, v.Reason = Refused, err.Error() }

// recordRoom returns how many bytes of records the object can still hold.
func (e *Evaluation) recordRoom() int {
	room := maxObject - e.Owner.Size
	for _, tuples := range [][]tuple.Tuple{e.Owner.Declared, e.Owner.Record.Tuples} {
		for _, t := range tuples {
			room -= t.Size()
		}
	}
	return room
}

func tupleSet(tuples []tuple.Tuple) map[tuple.Tuple]struct{} {
	s := make(map[tuple.Tuple]struct{}, len(tuples))
	for _, t := range tuples {
		s[t] = struct{}{}
	}
	return s
}
