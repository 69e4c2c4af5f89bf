package declared

import (
	"fmt"
	"testing"

	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

func TestVerifiedRecordsAreBounded(t *testing.T) {
	r := newVerifiedRecords(0)
	for i := range maxRemembered + 10 {
		r.markCleanedUp("S1", ownerObject{Owner: plan.Owner{UID: fmt.Sprint(i)}})
		if !r.markFirstPass(fmt.Sprint(i)) || r.markFirstPass(fmt.Sprint(i)) {
			t.Fatal("the first pass is not told from others")
		}
	}
	if gone, stores := len(r.cleaned.Keys()), len(r.passed.Keys()); gone != maxRemembered || stores != maxRemembered {
		t.Errorf("%d that are gone and %d stores are remembered", gone, stores)
	}
}

func TestVerifiedRecordsKeepRetriedWriteOnce(t *testing.T) {
	r := newVerifiedRecords(0)
	for range 3 {
		r.recordStartedWrite("S1", []tuple.Tuple{{ID: tuple.ID{Object: "doc:1", Relation: "viewer", User: "user:a"}}})
	}
	if n := len(r.unfinishedWrites("S1")); n != 1 {
		t.Errorf("%d are remembered", n)
	}
}
