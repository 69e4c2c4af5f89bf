//go:build !race

// The race detector is excluded: these tests use a single goroutine, and would take minutes with it.

package authz

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/entail-dev/entail/services/internal/iam/world"
	"github.com/entail-dev/entail/services/internal/seeds"
)

// worldCount returns the number of worlds: the variable WORLDS, or enough for a million queries. Mutants use fewer
// worlds.
func worldCount(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv("WORLDS"), 10, 64)
	if err != nil {
		return 2100
	}
	return n
}

// TestIndexEqualsNaiveAuthorizerUnderRandomChanges compares the index after random changes with a naive implementation
// that reads the current objects.
func TestIndexEqualsNaiveAuthorizerUnderRandomChanges(t *testing.T) {
	asked, granted := 0, 0
	for seed := range seeds.SeedRange(t, worldCount(t)) {
		w, before, r := world.NewRandom(seed), receivedObjects{}, rand.New(rand.NewPCG(seed, 0))
		x := New(w.IsTrusted)
		x.BulkLoad(func() { before = before.tell(r, x, w) })
		for state := range states {
			before = before.tell(r, x, w)
			n := world.NewNaiveAuthorizer(w)
			for range questions {
				request := w.RandomRequest()
				q, want := newQuery(request), n.Allows(request)
				if _, got := x.Decide(q); got != want {
					t.Fatalf("world %d, state %d: index %v, naive %v for %+v", seed, state, got, want, request)
				}
				asked++
				if want {
					granted++
				}
			}
			for range changes {
				w.ChangeRandomly()
			}
		}
		x.emptied(t, before)
	}
	t.Logf("%d questions, %d allowed", asked, granted)
	if granted < asked/20 || granted > asked/2 {
		t.Error("want between 5 % and 50 % of the queries allowed")
	}
}
