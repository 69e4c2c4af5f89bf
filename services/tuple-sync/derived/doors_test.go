package derived

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// undeclaredTuple returns a tuple that no object declares.
func undeclaredTuple(user string) tuple.Tuple {
	return tuple.Tuple{ID: tuple.ID{Object: iam.GroupType + ":door", Relation: "member", User: iam.UserSubject(user)}}
}

// Any number of undeclared tuples of one object cause one Event.
func TestUndeclaredTuplesCauseOneEvent(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	before := b.openFGA.holds()
	for i := range 250 {
		b.openFGA.change(undeclaredTuple(fmt.Sprint("eve", i)), true)
	}
	b.follow()
	if after := b.openFGA.holds(); !slices.Equal(before, after) {
		t.Errorf("%d tuples are there, want %d", len(after), len(before))
	}
	if len(b.notes) != 1 || !strings.Contains(b.notes[0].Message, "250 tuples") {
		t.Errorf("told is %+v", b.notes)
	}
	families, err := b.metrics.Gather()
	if err != nil || len(families) != 2 || families[1].GetMetric()[0].GetCounter().GetValue() != 250 {
		t.Errorf("counted is %v (%v)", families, err)
	}
}

// A tuple removed because its declaration ended is no back door.
func TestRevocationDoesNotCauseEventAboutUndeclaredTuples(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	b.follow()
	held := len(b.openFGA.holds())
	b.drop(kinds.PolicyBindings(), "bob")
	b.drop(kinds.GroupMemberships(), "alice-staff")
	b.work()
	b.follow()
	if left := len(b.openFGA.holds()); left >= held {
		t.Errorf("%d tuples are left of %d", left, held)
	}
	if slices.ContainsFunc(b.notes, func(n condition.EventContent) bool { return n.Reason == "UndeclaredTupleRemoved" }) {
		t.Errorf("told is %+v", b.notes)
	}
	families, err := b.metrics.Gather()
	if err != nil || families[1].GetMetric()[0].GetCounter().GetValue() != 0 {
		t.Errorf("counted is %v (%v)", families, err)
	}
}
