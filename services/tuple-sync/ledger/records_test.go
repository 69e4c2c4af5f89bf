package ledger

import (
	"fmt"
	"testing"

	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
	"github.com/entail-dev/entail/services/tuple-sync/ledger/plan"
)

func TestWhatIsRememberedOfObjectsThatAreGoneIsBounded(t *testing.T) {
	r := newRecords()
	for i := range maxCleaned + 10 {
		r.clean("S1", object{Owner: plan.Owner{UID: fmt.Sprint(i)}})
	}
	if n := len(r.cleaned.Keys()); n != maxCleaned {
		t.Errorf("%d are remembered", n)
	}
}

func TestWhatIsTriedAgainForLongIsRememberedOnce(t *testing.T) {
	r := newRecords()
	for range 3 {
		r.wrote("S1", []tuple.Tuple{{ID: tuple.ID{Object: "doc:1", Relation: "viewer", User: "user:a"}}})
	}
	if n := len(r.strays("S1")); n != 1 {
		t.Errorf("%d are remembered", n)
	}
}
