package confirm

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

// Statement is the state of one object on which a decision is based. The state can be that the object does not exist.
type Statement struct {
	change event.Change
	// is returns the fingerprint of that state. read returns the fingerprint of another state.
	is   func() (essence, error)
	read func(event.Change) (essence, error)
}

// essence is a fingerprint of the fields that decisions depend on. It is zero for an object that does not exist.
type essence struct {
	// declared covers the fields of other writers. recorded covers the fields of this service, and is zero if there are
	// none.
	declared, recorded [sha256.Size]byte
}

// NewStatement returns a statement that an object is as the view holds it. matters returns the fields that count: the
// declared ones, and those that this service records.
func NewStatement[T any](o informer.Object[T], matters func(*T) (declared, recorded any)) Statement {
	of := func(uid string, value *T) (e essence, err error) {
		declared, recorded := matters(value)
		if e.declared, err = fingerprint([]any{uid, declared}); err == nil && recorded != nil {
			e.recorded, err = fingerprint(recorded)
		}
		return e, err
	}
	return Statement{
		change: o.Change,
		is: func() (essence, error) {
			if o.UID == "" || o.Deleted || o.Value == nil {
				return essence{}, nil
			}
			return of(o.UID, o.Value)
		},
		read: func(c event.Change) (essence, error) {
			value := new(T)
			if c.Deleted {
				return essence{}, nil
			}
			if err := c.Decode(value); err != nil {
				return essence{}, err
			}
			return of(c.UID, value)
		},
	}
}

// Outdated returns a statement whose confirmation fails with [reconcile.ErrStale]. It serves a state that reached the
// view after the decision.
func Outdated(c event.Change) Statement {
	return Statement{change: c, is: func() (essence, error) { return essence{}, fmt.Errorf("%s: %w", c.Key, reconcile.ErrStale) }}
}

// Change returns the stated state.
func (s Statement) Change() event.Change { return s.change }

// IsSame reports whether two statements have the same object and fingerprint.
func (s Statement) IsSame(other Statement) bool {
	is, err := s.is()
	was, otherErr := other.is()
	return s.change.Key == other.change.Key && err == nil && otherErr == nil && is == was
}

func fingerprint(of any) ([sha256.Size]byte, error) {
	data, err := json.Marshal(of)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("encoding what an object declares: %w", err)
	}
	return sha256.Sum256(data), nil
}
