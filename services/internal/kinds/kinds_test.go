package kinds_test

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

func TestEveryKindIsFoundByItsResourceAlone(t *testing.T) {
	seen := map[event.GroupResource]bool{}
	for _, kind := range kinds.All() {
		if seen[kind.GroupResource] {
			t.Errorf("%s is listed twice", kind.GroupResource)
		}
		seen[kind.GroupResource] = true
		if kind.Kind == "" || kind.Version == "" || kind.Resource == "" {
			t.Errorf("%+v is incomplete", kind)
		}
		if found, ok := kinds.Of(kind.GroupResource); !ok || found != kind {
			t.Errorf("%s leads to %+v", kind.GroupResource, found)
		}
	}
	if found, ok := kinds.Of(event.GroupResource{Resource: "pods"}); ok {
		t.Errorf("nobody follows pods, yet there is %+v", found)
	}
}
