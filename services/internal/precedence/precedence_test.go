package precedence_test

import (
	"slices"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/precedence"
)

func TestCompareOrdersClaims(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	want := []precedence.Claim{
		{Core: true, Live: precedence.None, Created: at(9), Name: "store"},
		{Live: precedence.Present, Created: at(8), Name: "live"},
		{Live: precedence.Present, Served: true, Name: "discovered"},
		{Live: precedence.Earlier, Created: at(7), Name: "edited"},
		{Live: precedence.None, Document: true, Created: at(9), Name: "document"},
		{Live: precedence.None, Created: at(1), Name: "old"},
		{Live: precedence.None, Created: at(2), Name: "a"},
		{Live: precedence.None, Created: at(2), Name: "b"},
		{Live: precedence.None, Served: true, Name: "new resource"},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	if slices.SortFunc(got, precedence.Compare); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
