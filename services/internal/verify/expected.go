package verify

import (
	"encoding/json"
	"fmt"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
)

// ExpectedState is the state of one object from which a service decided. The object may be absent.
type ExpectedState struct {
	change event.Change
	// held returns the compared fields of the expected state. read returns the same fields of another state.
	held func() (comparedFields, error)
	read func(event.Change) (comparedFields, error)
}

// comparedFields holds, as JSON, the fields on which decisions depend. It is empty for an absent object.
type comparedFields struct {
	// declared holds the UID and the fields that other writers set. recorded holds the fields that this service sets.
	declared, recorded string
}

// NewExpectedState returns the expected state of an object in the informer. of returns the fields that must match.
// declared holds the fields of other writers, and recorded holds the fields of this service.
func NewExpectedState[T any](o informer.Object[T], of func(*T) (declared, recorded any)) ExpectedState {
	fieldsOf := func(uid string, value *T) (f comparedFields, err error) {
		declared, recorded := of(value)
		if f.declared, err = encodeJSON([]any{uid, declared}); err == nil {
			f.recorded, err = encodeJSON(recorded)
		}
		return f, err
	}
	return ExpectedState{
		change: o.Change,
		held: func() (comparedFields, error) {
			if o.UID == "" || o.Deleted || o.Value == nil {
				return comparedFields{}, nil
			}
			return fieldsOf(o.UID, o.Value)
		},
		read: func(c event.Change) (comparedFields, error) {
			value := new(T)
			if c.Deleted {
				return comparedFields{}, nil
			}
			if err := c.Decode(value); err != nil {
				return comparedFields{}, err
			}
			return fieldsOf(c.UID, value)
		},
	}
}

// Change returns the expected state as a change.
func (e ExpectedState) Change() event.Change { return e.change }

// Equals reports whether both expected states have the same object and the same fields.
func (e ExpectedState) Equals(other ExpectedState) bool {
	is, err := e.held()
	was, otherErr := other.held()
	return e.change.Key == other.change.Key && err == nil && otherErr == nil && is == was
}

func encodeJSON(value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encoding the fields of an object: %w", err)
	}
	return string(data), nil
}
