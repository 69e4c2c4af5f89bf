package event_test

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/event"
)

func TestCompareEpochsOrdersOneCluster(t *testing.T) {
	t.Parallel()
	second := event.NextEpoch("uid")
	third := event.NextEpoch(second)
	for name, c := range map[string]struct {
		a, b  string
		order int
		same  bool
	}{
		"the same":               {third, third, 0, true},
		"the first and the next": {"uid", second, -1, true},
		"a later one":            {third, second, 1, true},
		"beyond one digit":       {"uid/10", "uid/9", 1, true},
		"of two clusters":        {"uid/3", "other/1", 0, false},
		"what is no number":      {"uid/x", "uid", 0, false},
		"too large a number":     {"uid/18446744073709551615", "uid", 0, false},
	} {
		if order, same := event.CompareEpochs(c.a, c.b); order != c.order || same != c.same {
			t.Errorf("%s: %d, %v", name, order, same)
		}
	}
}

func TestIsNewerThanPrefersLaterEpoch(t *testing.T) {
	t.Parallel()
	before, after := sample(), sample()
	after.Epoch, after.ResourceVersion = event.NextEpoch(before.Epoch), "1"
	if !after.IsNewerThan(before) || before.IsNewerThan(after) {
		t.Error("the order is not that of the epochs")
	}
	if before.Deleted = true; before.IsNewerThan(after) {
		t.Error("a deletion of an earlier epoch replaces a state of a later one")
	}
	if after.ResourceVersion = before.ResourceVersion; after.DeduplicationID() == sample().DeduplicationID() {
		t.Errorf("two states have the ID %s", after.DeduplicationID())
	}
}
