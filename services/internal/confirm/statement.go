package confirm

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/view"
)

// Statement is what a decision takes one object to be, or that there is none.
type Statement struct {
	change event.Change
	// is stands for what was decided from; read finds out the same of another state.
	is   func() (essence, error)
	read func(event.Change) (essence, error)
}

// essence stands for an object as far as decisions depend on it; the zero value for one that is not there.
type essence struct {
	// declared is what others say in it, recorded what we have; zero where we record nothing.
	declared, recorded [sha256.Size]byte
}

// NewStatement says that an object is as the view had it. The function tells what of it matters: what
// others declare, and what we have recorded in it.
func NewStatement[T any](o view.Object[T], matters func(*T) (declared, recorded any)) Statement {
	of := func(uid string, value *T) (e essence, err error) {
		declared, recorded := matters(value)
		if e.declared, err = sum([]any{uid, declared}); err == nil && recorded != nil {
			e.recorded, err = sum(recorded)
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

// Outdated is what the view has come to know only after what was decided: [reconcile.ErrStale].
func Outdated(c event.Change) Statement {
	return Statement{change: c, is: func() (essence, error) { return essence{}, fmt.Errorf("%s: %w", c.Key, reconcile.ErrStale) }}
}

// Change is the state that the statement is about.
func (s Statement) Change() event.Change { return s.change }

// Same reports whether two statements are of the same object, which others have not changed in between.
func (s Statement) Same(other Statement) bool {
	is, err := s.is()
	was, otherErr := other.is()
	return s.change.Key == other.change.Key && err == nil && otherErr == nil && is == was
}

func sum(of any) ([sha256.Size]byte, error) {
	data, err := json.Marshal(of)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("encoding what an object declares: %w", err)
	}
	return sha256.Sum256(data), nil
}
