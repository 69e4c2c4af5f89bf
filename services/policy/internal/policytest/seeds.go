package policytest

import (
	"iter"
	"os"
	"strconv"
	"testing"
)

// FirstSeed returns the first seed of a test with random inputs: ENTAIL_SEED, an unsigned number, or 0. A failed test
// logs a seed that was set.
func FirstSeed(t testing.TB) uint64 {
	t.Helper()
	value := os.Getenv("ENTAIL_SEED")
	if value == "" {
		return 0
	}
	first, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		t.Fatalf("ENTAIL_SEED: %v; set an unsigned number", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("ENTAIL_SEED=%d repeats this", first)
		}
	})
	return first
}

// SeedRange yields count seeds, beginning with the first seed of the test.
func SeedRange(t testing.TB, count uint64) iter.Seq[uint64] {
	t.Helper()
	first := FirstSeed(t)
	return func(yield func(uint64) bool) {
		for i := range count {
			if !yield(first + i) {
				return
			}
		}
	}
}
