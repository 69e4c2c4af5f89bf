package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/precedence"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// VerdictState is the result for a declared tuple.
type VerdictState int

// States.
const (
	// Accepted tuples should be in the store.
	Accepted VerdictState = iota
	// Waiting tuples may be accepted once their store or module exists.
	Waiting
	// Refused tuples need a correction.
	Refused
)

// Verdict is the decision on one declared tuple.
type Verdict struct {
	tuple.Tuple
	State  VerdictState
	Reason string

	// recorded means that the owner's record lists exactly this tuple.
	recorded bool
}

// Evaluation is the decision on one owner.
type Evaluation struct {
	Owner *Owner
	// Verdicts holds the decisions in the order of Declared.
	Verdicts []Verdict

	phase ownerPhase
	// desired lists the tuples that the store should hold for the owner.
	desired []tuple.Tuple
}

// tupleClaim is a tuple that an owner desires.
type tupleClaim struct {
	tuple.Tuple
	by       *Evaluation
	recorded bool
}

// isStrongerThan reports whether c is stronger than a claim to the same ID with another condition. Recorded tuples of an owner
// whose store is unknown cannot be beaten.
func (c tupleClaim) isStrongerThan(o tupleClaim) bool {
	return o.by.phase == here && precedence.Compare(c.by.precedenceClaim(c.recorded), o.by.precedenceClaim(o.recorded)) < 0
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

// EvaluateOwners decides on every owner of a store. If two contradict each other, the stronger claim wins; see package
// precedence. Without a model, recorded tuples stay and new ones wait.
func EvaluateOwners(storeID string, owners []Owner, model *Model) []*Evaluation {
	evaluations, _ := evaluateOwners(storeID, owners, model)
	return evaluations
}

func evaluateOwners(storeID string, owners []Owner, model *Model) ([]*Evaluation, map[tuple.ID]tupleClaim) {
	all := make([]*Evaluation, len(owners))
	claims := map[tuple.ID]tupleClaim{}
	for i := range owners {
		all[i] = &Evaluation{Owner: &owners[i], phase: owners[i].phaseInStore(storeID)}
	}
	slices.SortFunc(all, func(a, b *Evaluation) int {
		return precedence.Compare(a.precedenceClaim(false), b.precedenceClaim(false))
	})
	for _, e := range all {
		if e.phase == storeUnknown {
			e.keepRecordedTuples(claims)
		}
	}
	for _, e := range all {
		switch {
		case e.phase == here:
			e.decideTuples(model)
			e.claimAcceptedTuples(claims)
		case e.phase == noStore:
			e.markAllWaiting(errNoStore)
		case e.phase == unrelated && e.Owner.TargetStoreID == storeID && !e.Owner.Deleting:
			e.markAllWaiting(errElsewhere)
		}
	}
	for _, e := range all {
		if e.phase == here {
			e.refuseTuplesWithStrongerClaim(claims)
		}
	}
	return all, claims
}

// keepRecordedTuples makes the owner desire everything recorded.
func (e *Evaluation) keepRecordedTuples(claims map[tuple.ID]tupleClaim) {
	e.desired = e.Owner.Record.Tuples
	for _, t := range e.desired {
		e.addClaim(claims, t, true)
	}
}

// claimAcceptedTuples claims the tuples accepted so far.
func (e *Evaluation) claimAcceptedTuples(claims map[tuple.ID]tupleClaim) {
	for _, v := range e.Verdicts {
		if v.State == Accepted {
			e.addClaim(claims, v.Tuple, v.recorded)
		}
	}
}

func (e *Evaluation) markAllWaiting(why error) {
	for _, t := range e.Owner.Declared {
		e.Verdicts = append(e.Verdicts, Verdict{Tuple: t, State: Waiting, Reason: why.Error()})
	}
}

// WrittenTuples returns the tuples in the store for the owner, if its record is in step.
func (e *Evaluation) WrittenTuples() map[tuple.Tuple]struct{} {
	if !e.Owner.isRecordInStore() {
		return nil
	}
	return tupleSet(e.Owner.Record.Tuples)
}

// HasCompleteRecordAfterPlan reports whether the plan puts the owner's whole record into the store.
func (e *Evaluation) HasCompleteRecordAfterPlan() bool { return e.phase == here && !e.Owner.Unwritable }

// precedenceClaim returns the owner's claim to a tuple.
func (e *Evaluation) precedenceClaim(recorded bool) precedence.Claim {
	c := precedence.Claim{
		Core: e.Owner.IsStore, Live: precedence.None, Created: e.Owner.Created, Name: e.Owner.Key.SubjectTokens() + "\x00" + e.Owner.UID,
	}
	if recorded {
		c.Live = precedence.Present
	}
	return c
}

// addClaim adds the owner's claim to a tuple, unless an equal or stronger one exists.
func (e *Evaluation) addClaim(claims map[tuple.ID]tupleClaim, t tuple.Tuple, recorded bool) {
	c := tupleClaim{t, e, recorded}
	if other, taken := claims[t.ID]; !taken || other.Tuple != t && c.isStrongerThan(other) {
		claims[t.ID] = c
	}
}

// refuseTuplesWithStrongerClaim refuses accepted tuples with a stronger claim of another owner. The owner desires the
// rest.
func (e *Evaluation) refuseTuplesWithStrongerClaim(claims map[tuple.ID]tupleClaim) {
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
	room := e.remainingRecordBytes()
	for _, t := range e.Owner.Declared {
		v := Verdict{Tuple: t}
		_, twice := declared[t.ID]
		declared[t.ID] = struct{}{}
		_, v.recorded = recorded[t]
		switch err := t.Validate(); {
		case e.Owner.Reserved && iam.IsIAMObject(t.Object):
			v.setRefused(errReserved)
		case e.Owner.isForbiddenOwnerTuple(t):
			v.setRefused(errOwner)
		case err != nil:
			v.setRefused(err)
		case twice:
			v.setRefused(errTwice)
		case model == nil && !v.recorded:
			v.State, v.Reason = Waiting, errNoModel.Error()
		case e.Owner.Outdated && !v.recorded && !e.Owner.hasMovedStore():
			v.State, v.Reason = Waiting, errOutdated.Error()
		case e.Owner.Deleting && !e.Owner.HasFinalizer && !v.recorded:
			v.setRefused(errDeleting)
		case model != nil:
			e.validateTuple(model, &v)
		}
		if v.State == Accepted && !v.recorded {
			if room -= t.JSONSize(); room < 0 {
				v.setRefused(errTooLarge)
			}
		}
		e.Verdicts = append(e.Verdicts, v)
	}
}

// validateTuple validates a tuple against the model. Until the owner's module is live, an invalid tuple waits.
func (e *Evaluation) validateTuple(model *Model, v *Verdict) {
	err := model.ValidateTuple(v.Tuple)
	if err == nil {
		return
	}
	v.setRefused(err)
	if !e.Owner.ModuleLive {
		v.State = Waiting
	}
}

func (v *Verdict) setRefused(err error) { v.State, v.Reason = Refused, err.Error() }

// remainingRecordBytes returns how many bytes of records the object can still hold.
func (e *Evaluation) remainingRecordBytes() int {
	room := maxObject - e.Owner.Size
	for _, tuples := range [][]tuple.Tuple{e.Owner.Declared, e.Owner.Record.Tuples} {
		for _, t := range tuples {
			room -= t.JSONSize()
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
