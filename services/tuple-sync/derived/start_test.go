package derived

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/kinds"
)

func TestAStartThatFindsMuchToGiveHasItListedAtOnce(t *testing.T) {
	const bindings = 60
	b, of := newBed(t), kinds.PolicyBindings().GroupResource
	b.bindMany(bindings, bindings, 1)
	for _, test := range []struct {
		when         string
		lists, reads int
	}{{"with nothing in the store", 1, 0}, {"with all in step", 0, 0}, {"with one more", 0, 1}} {
		if test.reads > 0 {
			b.bind("more", "viewer", b.subject(kinds.Users(), "user-0"))
		}
		b.open()
		b.Confirmer.InBulk(b, 1)
		clear(b.reads)
		clear(b.lists)
		b.drain()
		if b.lists[of] != test.lists || b.reads[of] != test.reads {
			t.Errorf("%s bindings are listed %d times and read %d times, want %+v", test.when, b.lists[of], b.reads[of], test)
		}
		b.inStep(test.when)
	}
}
