package rpc

import (
	"errors"
	"testing"

	"connectrpc.com/connect"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

func TestFindObjectExplainsMissingAnswer(t *testing.T) {
	objects := map[event.Key]string{{GroupResource: kinds.Stores().GroupResource, Name: "a"}: "A"}
	get := func(k event.Key) (string, bool) { o, ok := objects[k]; return o, ok }
	for name, c := range map[string]struct {
		complete error
		key      event.Key
		want     string
		code     connect.Code
		message  string
	}{
		"found":      {key: event.Key{GroupResource: kinds.Stores().GroupResource, Name: "a"}, want: "A"},
		"none":       {key: event.Key{GroupResource: kinds.Stores().GroupResource, Name: "b"}, code: connect.CodeNotFound, message: `there is no Store "b"`},
		"namespaced": {key: event.Key{GroupResource: kinds.ImpliedRoles().GroupResource, Namespace: "n", Name: "b"}, code: connect.CodeNotFound, message: `there is no ImpliedRoles "n/b"`},
		"incomplete": {complete: errors.New("no snapshot"), key: event.Key{Name: "a"}, code: connect.CodeUnavailable, message: "the service has not read everything yet; try again: no snapshot"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FindObject(func() error { return c.complete }, get, c.key)
			if got != c.want {
				t.Errorf("found %q", got)
			}
			if made, ok := errors.AsType[*connect.Error](err); ok && (made.Code() != c.code || made.Message() != c.message) || ok == (c.code == 0) {
				t.Errorf("error %v", err)
			}
		})
	}
}
