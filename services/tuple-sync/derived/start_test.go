package derived

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/kinds"
)

// Grants follow from the informer alone. The API server is read once, before the store is adopted.
func TestGrantsDoNotNeedAPIServerRead(t *testing.T) {
	const bindings = 60
	b := newReconcilerEnv(t)
	b.bindMany(bindings, bindings, 1)
	for _, when := range []string{"with an empty store", "with all in step", "with one more binding"} {
		if when == "with one more binding" {
			b.bind("more", "viewer", b.subject(kinds.IAMUsers(), "user-0"))
		}
		b.open()
		clear(b.reads)
		b.drain()
		if len(b.reads) != 1 || b.reads[kinds.Stores().GroupResource] != 1 {
			t.Errorf("%s: got reads %v, want one of the Store", when, b.reads)
		}
		b.inStep(when)
	}
}
