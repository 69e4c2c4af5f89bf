package mirror

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/kinds"
)

func TestAStartThatFindsMuchToGiveHasItListedAtOnce(t *testing.T) {
	const bindings = 60
	b, of := newBed(t), kinds.PolicyBindings().GroupResource
	b.bindMany(bindings, bindings, 1)
	for _, test := range []struct {
		when  string
		lists int
	}{{"with nothing in the store", 1}, {"with all in step", 0}} {
		b.open()
		b.Confirmer.InBulk(b, 1)
		clear(b.reads)
		clear(b.lists)
		b.drain()
		if b.lists[of] != test.lists || b.reads[of] != 0 {
			t.Errorf("%s bindings are listed %d times and read %d times, want %d lists", test.when, b.lists[of], b.reads[of], test.lists)
		}
		b.inStep(test.when)
	}
}
