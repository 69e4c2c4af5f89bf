package verify

import (
	"encoding/json"
	"fmt"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
)

// Expected is the state of one object on which a decision is based. The object may be absent.
type Expected struct {
	change event.Change
	// held returns the fields of that state. read returns the fields of another state.
	held func() (fields, error)
	read func(event.Change) (fields, error)
}

// fields holds, as JSON, the fields on which decisions depend. It is zero for an absent object.
type fields struct {
	// declared holds the UID and the fields of other writers. recorded holds the fields of this service.
	declared, recorded string
}

// Expect returns the state of an object that the view holds. of returns the fields that must match: those that other
// writers declare, and those that this service records.
func Expect[T any](o informer.Object[T], of func(*T) (declared, recorded any)) Expected {
	fieldsOf := func(uid string, value *T) (f fields, err error) {
		declared, recorded := of(value)
		if f.declared, err = encodeValue([]any{uid, declared}); err == nil {
			f.recorded, err = encodeValue(recorded)
		}
		return f, err
	}
	return Expected{
		change: o.Change,
		held: func() (fields, error) {
			if o.UID == "" || o.Deleted || o.Value == nil {
				return fields{}, nil
			}
			return fieldsOf(o.UID, o.Value)
		},
		read: func(c event.Change) (fields, error) {
			value := new(T)
			if c.Deleted {
				return fields{}, nil
			}
			if err := c.Decode(value); err != nil {
				return fields{}, err
			}
			return fieldsOf(c.UID, value)
		},
	}
}

// Change returns the expected state as a change.
func (e Expected) Change() event.Change { return e.change }

// Equals reports whether two expected states have the same object and the same fields.
func (e Expected) Equals(other Expected) bool {
	is, err := e.held()
	was, otherErr := other.held()
	return e.change.Key == other.change.Key && err == nil && otherErr == nil && is == was
}

func encodeValue(value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encoding the fields of an object: %w", err)
	}
	return string(data), nil
}
