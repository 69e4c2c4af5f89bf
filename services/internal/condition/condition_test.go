package condition_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/condition"
)

func at(second int64) metav1.Time { return metav1.NewTime(time.Unix(second, 0)) }

func TestMergeConditionsReturnsGivenTypesInOrder(t *testing.T) {
	then, now := at(1000), at(2000)
	has := []metav1.Condition{
		{Type: "Theirs", Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: then},
		{Type: "B", Status: metav1.ConditionTrue, Reason: "Old", ObservedGeneration: 1, LastTransitionTime: then},
		{Type: "Kept", Status: metav1.ConditionFalse, Reason: "R", ObservedGeneration: 1, LastTransitionTime: then},
	}
	before := append([]metav1.Condition{}, has...)
	got := condition.MergeConditions(has, []string{"Kept", "B", "A"}, 2, now,
		condition.New("B", true, "New", "says more"), condition.New("A", false, "First", ""))
	want := []metav1.Condition{
		{Type: "A", Status: metav1.ConditionFalse, Reason: "First", ObservedGeneration: 2, LastTransitionTime: now},
		{Type: "B", Status: metav1.ConditionTrue, Reason: "New", Message: "says more", ObservedGeneration: 2, LastTransitionTime: then},
		{Type: "Kept", Status: metav1.ConditionFalse, Reason: "R", ObservedGeneration: 1, LastTransitionTime: then},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if !reflect.DeepEqual(has, before) {
		t.Errorf("the given conditions changed: %+v", has)
	}
}

func TestMergeConditionsChangesTransitionTimeWithStatus(t *testing.T) {
	now := at(2000)
	has := condition.MergeConditions(nil, []string{"A"}, 1, at(1000), condition.New("A", false, "R", "m"))
	got := condition.MergeConditions(has, []string{"A"}, 1, now, condition.New("A", true, "R", "m"))
	if !got[0].LastTransitionTime.Equal(&now) || !condition.New("A", true, "", "").IsTrue() {
		t.Errorf("%+v", got)
	}
}

func TestNewBoundsMessage(t *testing.T) {
	got := condition.MergeConditions(nil, []string{"A"}, 1, at(2000), condition.New("A", true, "R", strings.Repeat("ä", 5000)))
	if len(got[0].Message) > 1024 || !strings.HasSuffix(got[0].Message, "ä…") {
		t.Errorf("%d bytes: %q", len(got[0].Message), got[0].Message)
	}
}

func TestFindChangedConditionComparesContent(t *testing.T) {
	c := func(generation int64, c condition.Condition) []metav1.Condition {
		return condition.MergeConditions(nil, []string{"A"}, generation, at(2000), c)
	}
	a := condition.New("A", true, "R", "m")
	for name, test := range map[string]struct {
		before, after []metav1.Condition
		want          bool
	}{
		"new":           {nil, c(1, a), true},
		"gone":          {c(1, a), nil, false},
		"as before":     {c(1, a), c(2, a), false},
		"other status":  {c(1, a), c(1, condition.New("A", false, "R", "m")), true},
		"other reason":  {c(1, a), c(1, condition.New("A", true, "S", "m")), true},
		"other message": {c(1, a), c(1, condition.New("A", true, "R", "n")), true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := condition.FindChangedCondition(test.before, test.after, "A"); got != test.want {
				t.Errorf("changed: %v", got)
			}
		})
	}
}
