package rpc

import (
	"cmp"
	"context"
	"fmt"

	"connectrpc.com/connect"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/nearest"
)

// FindObject returns the object that a request names. It returns an error for the caller if the informer is incomplete
// or the object does not exist.
func FindObject[T any](incompleteErr func() error, get func(event.Key) (T, bool), key event.Key) (T, error) {
	var none T
	if err := IncompleteError(incompleteErr()); err != nil {
		return none, err
	}
	found, ok := get(key)
	if !ok {
		kind, _ := kinds.ByResource(key.GroupResource)
		return none, NotFoundError("there is no %s %q", cmp.Or(kind.Kind, key.Resource), key.NamespacedName())
	}
	return found, nil
}

// AddNameSuggestions adds the nearest names to an error of [FindObject] about a cluster-scoped object that does not
// exist. It returns the error unchanged if the caller may not list the kind.
func AddNameSuggestions(ctx context.Context, err error, r event.GroupResource, name string, known func() []string) error {
	missing, ok := err.(*connect.Error) //nolint:errorlint // FindObject returns it as it is.
	if !ok || missing.Code() != connect.CodeNotFound || CheckRight(ctx, RequiredRight{Verb: "list", GroupResource: r}) != nil {
		return err
	}
	return connect.NewError(connect.CodeNotFound, fmt.Errorf("%s%s", missing.Message(), nearest.Hint(name, r.Resource, known())))
}
