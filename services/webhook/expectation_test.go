package webhook

import (
	"testing"

	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// TestAwaitObjectIgnoresUnusedStatus expects no wait for the status of an Organization, which the service does
// not read.
func TestAwaitObjectIgnoresUnusedStatus(t *testing.T) {
	o := &resourcemanagerv1alpha1.Organization{}
	o.Name, o.UID, o.Generation = "acme", "1", 2
	const object = `{"metadata":{"name":"acme","uid":"1","generation":2,"resourceVersion":"8"},"status":{"observedGeneration":2}}`
	want, err := newExpectedObject[resourcemanagerv1alpha1.Organization](kinds.Organizations(), []byte(object))
	if err != nil {
		t.Fatal(err)
	}
	if !want.isSatisfiedByObject(event.Change{UID: "1", ResourceVersion: "7"}, o) {
		t.Error("got a wait, want none")
	}
}

func TestAwaitObjectIgnoresInsignificantChange(t *testing.T) {
	p := &resourcemanagerv1alpha1.Project{}
	p.Name, p.UID, p.Generation, p.Spec.OwnerRef.Name = "web", "1", 2, "acme"
	held := event.Change{UID: "1", ResourceVersion: "7"}
	for what, c := range map[string]struct {
		object string
		has    bool
	}{
		"as it is":    {`{"metadata":{"name":"web","uid":"1","resourceVersion":"7"}}`, true},
		"older":       {`{"metadata":{"name":"web","uid":"1","resourceVersion":"6"},"spec":{"ownerRef":{"name":"other"}}}`, true},
		"a status":    {`{"metadata":{"name":"web","uid":"1","generation":2,"resourceVersion":"8"},"spec":{"ownerRef":{"name":"acme"}},"status":{"organization":{"name":"acme","uid":"3"}}}`, false},
		"a label":     {`{"metadata":{"name":"web","uid":"1","generation":2,"resourceVersion":"8","labels":{"a":"b"}},"spec":{"ownerRef":{"name":"acme"}}}`, true},
		"a spec":      {`{"metadata":{"name":"web","uid":"1","generation":3,"resourceVersion":"8"},"spec":{"ownerRef":{"name":"other"}}}`, false},
		"an owner":    {`{"metadata":{"name":"web","uid":"1","generation":2,"resourceVersion":"8","ownerReferences":[{"name":"x"}]},"spec":{"ownerRef":{"name":"acme"}}}`, false},
		"a deletion":  {`{"metadata":{"name":"web","uid":"1","generation":3,"resourceVersion":"8","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"ownerRef":{"name":"acme"}}}`, false},
		"another UID": {`{"metadata":{"name":"web","uid":"2","generation":2,"resourceVersion":"6"},"spec":{"ownerRef":{"name":"acme"}}}`, false},
	} {
		want, err := newExpectedObject[resourcemanagerv1alpha1.Project](kinds.Projects(), []byte(c.object))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if has := want.isSatisfiedByObject(held, p); has != c.has {
				t.Errorf("%s: %v, want %v", what, has, c.has)
			}
		}
	}
}
