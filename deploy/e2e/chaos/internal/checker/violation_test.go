package checker

import (
	"errors"
	"fmt"
	"testing"
)

func TestViolationBeginsWithPrefixAndKind(t *testing.T) {
	for kind, want := range map[ViolationKind]string{
		Allow: "finding: allow: first\n  second", Leak: "finding: leak: first\n  second", Loss: "finding: loss: first\n  second",
		Write: "finding: write: first\n  second", Crash: "finding: crash: first\n  second", Stuck: "finding: stuck: first\n  second",
		Late: "finding: late: first\n  second",
	} {
		if got := (Violation{kind, errors.New("first\nsecond")}).ReportText(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAsViolationKeepsKindAndWholeText(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"a violation":         {Violation{Leak, errors.New("a tuple")}, "finding: leak: a tuple"},
		"a wrapped violation": {fmt.Errorf("after a replay: %w", Violation{Loss, errors.New("a tuple")}), "finding: loss: after a replay: a tuple"},
		"another error":       {errors.New("no answer"), "finding: stuck: no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AsViolation(test.err).ReportText(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
