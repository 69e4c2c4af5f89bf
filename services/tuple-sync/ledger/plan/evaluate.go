package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// State of a declared tuple.
type State int

// States.
const (
	// Accepted tuples are wanted in the store.
	Accepted State = iota
	// Waiting tuples may be accepted when the store or the module they need is there.
	Waiting
	// Refused tuples are a mistake.
	Refused
)

// Verdict is what is found about one declared tuple.
type Verdict struct {
	tuple.Tuple
	State  State
	Reason string
}

// Evaluation is what is found about one owner.
type Evaluation struct {
	Owner *Owner
	// Verdicts on its declared tuples, in their order.
	Verdicts []Verdict

	phase phase
	// desired is what the store is to hold on its behalf.
	desired []tuple.Tuple
}

// claim is a tuple that some owner wants.
type claim struct {
	tuple.Tuple
	by *Evaluation
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

// maxObject is how large an object may become: what the API server stores, less a margin.
const maxObject = 1536*1024 - 64*1024

// Evaluate decides on every owner of a store, in order of precedence: who comes first is
// right where two contradict. Without a model nothing is decided: what is recorded stays.
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
	slices.SortFunc(all, precedence)
	for _, e := range all {
		if e.phase == storeUnknown {
			e.desired = e.Owner.Record.Tuples
			e.claim(claims)
		}
	}
	for _, e := range all {
		switch {
		case e.phase == here:
			e.decide(model, claims)
			e.claim(claims)
		case e.phase == noStore:
			e.wait(errNoStore)
		case e.phase == unrelated && e.Owner.TargetStoreID == storeID && !e.Owner.Deleting:
			e.wait(errElsewhere)
		}
	}
	return all, claims
}

func (e *Evaluation) wait(why error) {
	for _, t := range e.Owner.Declared {
		e.Verdicts = append(e.Verdicts, Verdict{Tuple: t, State: Waiting, Reason: why.Error()})
	}
}

// Written are the tuples that are in the store on the owner's behalf, as far as its record tells.
func (e *Evaluation) Written() map[tuple.Tuple]struct{} {
	if !e.Owner.inStep() {
		return nil
	}
	return set(e.Owner.Record.Tuples)
}

// KeepsRecord means that the plan was made to have all of the owner's record in the store.
func (e *Evaluation) KeepsRecord() bool { return e.phase == here && !e.Owner.Unwritable }

func precedence(a, b *Evaluation) int {
	rank := func(o *Owner) int {
		if o.IsStore {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a.Owner), rank(b.Owner)), a.Owner.Created.Compare(b.Owner.Created),
		strings.Compare(a.Owner.Key.Tokens(), b.Owner.Key.Tokens()), strings.Compare(a.Owner.UID, b.Owner.UID))
}

func (e *Evaluation) claim(claims map[tuple.ID]claim) {
	for _, t := range e.desired {
		if _, ok := claims[t.ID]; !ok {
			claims[t.ID] = claim{t, e}
		}
	}
}

func (e *Evaluation) decide(model *Model, claims map[tuple.ID]claim) {
	recorded := set(e.Owner.Record.Tuples)
	declared := make(map[tuple.ID]struct{}, len(e.Owner.Declared))
	room := e.room()
	for _, t := range e.Owner.Declared {
		v := Verdict{Tuple: t}
		_, twice := declared[t.ID]
		declared[t.ID] = struct{}{}
		_, there := recorded[t]
		other, taken := claims[t.ID]
		switch err := t.Validate(); {
		case e.Owner.Reserved && iam.OwnsObject(t.Object):
			v.refuse(errReserved)
		case e.Owner.claimsStore(t):
			v.refuse(errOwner)
		case err != nil:
			v.refuse(err)
		case twice:
			v.refuse(errTwice)
		case taken && other.Tuple != t:
			v.refuse(fmt.Errorf("%w by %s: change one of them", errOtherSays, other.by.Owner.Key))
		case model == nil && !there:
			v.State, v.Reason = Waiting, errNoModel.Error()
		case e.Owner.Outdated && !there && !e.Owner.moved():
			v.State, v.Reason = Waiting, errOutdated.Error()
		case e.Owner.Deleting && !e.Owner.HasFinalizer && !there:
			v.refuse(errDeleting)
		case model != nil:
			e.ask(model, &v)
		}
		if v.State == Accepted && !there {
			if room -= t.Size(); room < 0 {
				v.refuse(errTooLarge)
			}
		}
		if v.State == Accepted {
			e.desired = append(e.desired, t)
		}
		e.Verdicts = append(e.Verdicts, v)
	}
}

// ask lets the model decide. While the owner's own module is not part of it, it may be wrong.
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

// room is how much more may be recorded, in bytes.
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
