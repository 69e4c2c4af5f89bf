package rpc

import (
	"cmp"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// FindObject returns the object that a request names. It returns an error for the caller if the informer is incomplete
// or the object does not exist.
func FindObject[T any](complete func() error, get func(event.Key) (T, bool), key event.Key) (T, error) {
	var none T
	if err := IncompleteError(complete()); err != nil {
		return none, err
	}
	found, ok := get(key)
	if !ok {
		kind, _ := kinds.ByResource(key.GroupResource)
		return none, NotFoundError("there is no %s %q", cmp.Or(kind.Kind, key.Resource), key.NamespacedName())
	}
	return found, nil
}
