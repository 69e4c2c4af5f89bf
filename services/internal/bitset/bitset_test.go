package bitset_test

import (
	"slices"
	"testing"

	"github.com/entail-dev/entail/services/internal/bitset"
)

func setOf(numbers ...int) bitset.Set {
	s := bitset.New(200)
	for _, n := range numbers {
		s.Add(n)
	}
	return s
}

func TestSetHoldsWhatWasAdded(t *testing.T) {
	s := setOf(0, 63, 64, 199)
	s.AddAll(setOf(5, 64))
	want := []int{0, 5, 63, 64, 199}
	if got := slices.Collect(s.All()); !slices.Equal(got, want) || s.Count() != len(want) {
		t.Errorf("got %v and a count of %d, want %v", got, s.Count(), want)
	}
	for n := range 300 {
		if got := s.Has(n); got != slices.Contains(want, n) {
			t.Errorf("%d: got %t", n, got)
		}
	}
	for range s.All() {
		break
	}
}

func TestSetsAreCompared(t *testing.T) {
	a := setOf(1, 2, 130)
	for name, c := range map[string]struct {
		with, without bitset.Set
		common        int
		any           bool
	}{
		"equal":                   {a, nil, 3, true},
		"nothing":                 {nil, nil, 0, false},
		"fewer words":             {bitset.Set{1 << 2}, nil, 1, true},
		"other numbers":           {setOf(3, 131), nil, 0, false},
		"all left out":            {a, a, 3, false},
		"all but one left out":    {a, setOf(1, 2), 3, true},
		"left out of fewer words": {a, bitset.Set{1<<1 | 1<<2}, 3, true},
	} {
		if got := a.CountCommon(c.with); got != c.common {
			t.Errorf("%s: got %d common numbers, want %d", name, got, c.common)
		}
		if got := a.ContainsAnyExcept(c.with, c.without); got != c.any {
			t.Errorf("%s: got %t, want %t", name, got, c.any)
		}
	}
}
