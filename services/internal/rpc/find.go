package rpc

import (
	"cmp"
	"context"
	"fmt"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Find gets the object that a request names, or else what to tell the caller: that the view is
// not complete, or that there is no such object.
func Find[T any](complete func() error, get func(event.Key) (T, bool), key event.Key) (T, error) {
	var none T
	if err := Incomplete(complete()); err != nil {
		return none, err
	}
	found, ok := get(key)
	if !ok {
		kind, _ := kinds.Of(key.GroupResource)
		return none, NotFound("there is no %s %q", cmp.Or(kind.Kind, key.Resource), key.Path())
	}
	return found, nil
}

// Turns bounds how many calls do something costly at a time. The others wait.
type Turns chan struct{}

// NewTurns makes n of them.
func NewTurns(n int) Turns { return make(Turns, n) }

// Take waits for a turn, which giveBack ends.
func (t Turns) Take(ctx context.Context) (giveBack func(), err error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for others to be answered: %w", context.Cause(ctx))
	}
}
