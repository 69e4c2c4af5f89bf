package infer_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
)

// TestJudgedCondition computes the condition of a rule after each step, with the generation and the
// guard of that step.
func TestJudgedCondition(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	nobody := time.Time{}
	type step struct {
		generation int64
		since      time.Time
		want       bool
	}
	for name, c := range map[string]struct {
		created int
		steps   []step
	}{
		"written later":                                 {5, []step{{1, at(5), true}, {2, at(5), true}}},
		"written before":                                {4, []step{{1, at(5), false}, {1, at(5), false}}},
		"changed later":                                 {4, []step{{1, at(5), false}, {2, at(5), true}, {2, at(9), true}}},
		"changed before anything was said":              {4, []step{{2, at(5), false}}},
		"judged, and then nobody was":                   {5, []step{{1, at(5), true}, {1, at(9), true}, {1, nobody, true}}},
		"changed while nobody was judged":               {5, []step{{1, at(5), true}, {2, at(9), false}, {3, at(9), true}}},
		"changed while there was no guard":              {5, []step{{1, at(5), true}, {2, nobody, false}, {2, at(9), false}}},
		"again with a guard, and changed before it was": {5, []step{{1, nobody, false}, {2, at(9), false}}},
	} {
		rule := &rolev1alpha1.ImpliedRoles{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(c.created))}}
		for i, s := range c.steps {
			rule.Generation = s.generation
			got := infer.JudgedCondition(rule, s.since)
			if got.IsTrue() != s.want {
				t.Errorf("%s, step %d: it says %+v", name, i, got)
			}
			rule.Status.Conditions = condition.MergeConditions(nil, nil, s.generation, metav1.Now(), got)
		}
	}
}
