package ledger

import (
	"fmt"
	"testing"

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
