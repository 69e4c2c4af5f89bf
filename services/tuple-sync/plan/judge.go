package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	Tuple
	State  State
	Reason string
}

// Judgement is what is found about one owner.
type Judgement struct {
	*Owner
	// Verdicts on its declared tuples, in their order.
	Verdicts []Verdict

	stage stage
	// wants is what the store is to hold on its behalf.
	wants []Tuple
}

// claim is a tuple that some owner wants.
type claim struct {
	Tuple
	by *Judgement
}

var (
	errNoStore   = errors.New("the Store has no OpenFGA store yet")
	errElsewhere = errors.New("the object's tuples are still in another store")
	errNoModel   = errors.New("the store has no model yet")
	errTwice     = errors.New("the same tuple is declared above with another condition: keep one of them")
	errTooLarge  = errors.New("the object would become too large with its record in status.managedTuples: move tuples to another AuthorizationModel")
	errDeleting  = errors.New("the object is being deleted")
	errOtherSays = errors.New("the same tuple is declared with another condition")
)

// maxObject is how large an object may become: what the API server stores, less a margin.
const maxObject = 1536*1024 - 64*1024

// Judge rules on every owner of a store, in order of precedence: who comes first is
// right where two contradict. A nil model rules on nothing: what is recorded stays.
func Judge(storeID string, owners []Owner, model *Model) []*Judgement {
	judgements, _ := judge(storeID, owners, model)
	return judgements
}

func judge(storeID string, owners []Owner, model *Model) ([]*Judgement, map[ID]claim) {
	all := make([]*Judgement, len(owners))
	claims := map[ID]claim{}
	for i := range owners {
		all[i] = &Judgement{Owner: &owners[i], stage: owners[i].stage(storeID)}
	}
	slices.SortFunc(all, precedence)
	for _, j := range all {
		if j.stage == frozen {
			j.wants = j.Record.Tuples
			j.claim(claims)
		}
	}
	for _, j := range all {
		switch {
		case j.stage == stays:
			j.judge(model, claims)
			j.claim(claims)
		case j.stage == waits:
			j.wait(errNoStore)
		case j.stage == absent && j.Home == storeID && !j.Deleting:
			j.wait(errElsewhere)
		}
	}
	return all, claims
}

func (j *Judgement) wait(why error) {
	for _, t := range j.Declared {
		j.Verdicts = append(j.Verdicts, Verdict{Tuple: t, State: Waiting, Reason: why.Error()})
	}
}

// Written are the tuples that are in the store on j's behalf, as far as j's record tells.
func (j *Judgement) Written() map[Tuple]struct{} {
	if !j.settled() {
		return nil
	}
	return set(j.Record.Tuples)
}

func precedence(a, b *Judgement) int {
	rank := func(j *Judgement) int {
		if j.Principal {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Created.Compare(b.Created),
		strings.Compare(a.Key.Tokens(), b.Key.Tokens()), strings.Compare(a.UID, b.UID))
}

func (j *Judgement) claim(claims map[ID]claim) {
	for _, t := range j.wants {
		if _, ok := claims[t.ID]; !ok {
			claims[t.ID] = claim{t, j}
		}
	}
}

func (j *Judgement) judge(model *Model, claims map[ID]claim) {
	recorded := set(j.Record.Tuples)
	declared := make(map[ID]struct{}, len(j.Declared))
	room := j.room()
	for _, t := range j.Declared {
		v := Verdict{Tuple: t}
		_, twice := declared[t.ID]
		declared[t.ID] = struct{}{}
		_, there := recorded[t]
		other, taken := claims[t.ID]
		switch err := malformed(t); {
		case err != nil:
			v.refuse(err)
		case twice:
			v.refuse(errTwice)
		case taken && other.Tuple != t:
			v.refuse(fmt.Errorf("%w by %s: change one of them", errOtherSays, other.by.Key))
		case model == nil && !there:
			v.State, v.Reason = Waiting, errNoModel.Error()
		case j.Deleting && !j.Held && !there:
			v.refuse(errDeleting)
		case model != nil:
			j.ask(model, &v)
		}
		if v.State == Accepted && !there {
			if room -= t.size(); room < 0 {
				v.refuse(errTooLarge)
			}
		}
		if v.State == Accepted {
			j.wants = append(j.wants, t)
		}
		j.Verdicts = append(j.Verdicts, v)
	}
}

// ask lets the model rule. While the owner's own module is not part of it, it may be wrong.
func (j *Judgement) ask(model *Model, v *Verdict) {
	err := model.Judge(v.Tuple)
	if err == nil {
		return
	}
	v.refuse(err)
	if !j.Live {
		v.State = Waiting
	}
}

func (v *Verdict) refuse(err error) { v.State, v.Reason = Refused, err.Error() }

// room is how much more may be recorded, in bytes.
func (j *Judgement) room() int {
	room := maxObject - j.Bulk
	for _, t := range j.Declared {
		room -= t.size()
	}
	for _, t := range j.Record.Tuples {
		room -= t.size()
	}
	return room
}

func set(tuples []Tuple) map[Tuple]struct{} {
	s := make(map[Tuple]struct{}, len(tuples))
	for _, t := range tuples {
		s[t] = struct{}{}
	}
	return s
}
