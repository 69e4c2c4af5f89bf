package event

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type objectWithTimes struct {
	Spec   struct{ Says string }
	Status struct {
		Conditions  []metav1.Condition
		Suspensions []struct {
			Reason      string
			SuspendedAt metav1.Time
		}
	}
}

const timelyObject = `{"spec":{"says":"it"},"status":{
"conditions":[{"type":"A","lastTransitionTime":"AT"},{"type":"B","lastTransitionTime":"2026-01-02T03:04:05Z"}],
"suspensions":[{"reason":"Abuse","suspendedAt":"THEN"}]}}`

// The API server accepts all of these as times.
func TestDecodeObjectReplacesInvalidTimes(t *testing.T) {
	const good = "2026-01-02T03:04:05Z"
	for _, odd := range []string{"2026-01-01t00:00:00z", "2026-01-01T00:00:00x5Z", "2026-01-01T00:00:00+99:99", good} {
		for _, times := range [][2]string{{odd, good}, {good, odd}, {odd, odd}} {
			var is objectWithTimes
			object := strings.NewReplacer("AT", times[0], "THEN", times[1]).Replace(timelyObject)
			if err := (Change{Object: []byte(object)}).Decode(&is); err != nil {
				t.Fatalf("%v: %v", times, err)
			}
			c := is.Status.Conditions
			if is.Spec.Says != "it" || len(c) != 2 || c[0].Type != "A" || c[1].Type != "B" || c[1].LastTransitionTime.Year() != 2026 ||
				len(is.Status.Suspensions) != 1 || is.Status.Suspensions[0].Reason != "Abuse" {
				t.Errorf("%v: %+v", times, is)
			}
			for i, got := range []metav1.Time{c[0].LastTransitionTime, is.Status.Suspensions[0].SuspendedAt} {
				if want := map[bool]int{true: 2026, false: 1970}[times[i] == good]; got.UTC().Year() != want {
					t.Errorf("%v: %v", times, got.Format(time.RFC3339))
				}
			}
		}
	}
}

func TestDecodeObjectKeepsOtherErrors(t *testing.T) {
	for _, object := range []string{
		``, `{`, `7`, `{"spec":7}`, `{"spec":7,"status":{}}`, `{"spec":7,"status":{"conditions":7}}`, `{"status":{"conditions":[7]}}`,
		`{"spec":{"says":7},"status":{"conditions":[{"lastTransitionTime":"2026-01-01t00:00:00z"}]}}`,
	} {
		if err := DecodeObject([]byte(object), new(objectWithTimes)); err == nil {
			t.Errorf("%s is read", object)
		}
	}
}
