package rpc

import (
	"cmp"

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
