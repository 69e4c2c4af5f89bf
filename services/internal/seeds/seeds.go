// Package seeds provides the seeds of tests with random inputs. By default a test always uses the same seeds, so that
// Go can cache its result. ENTAIL_SEED selects the first seed, and ENTAIL_ROUNDS raises the number of rounds.
package seeds

import (
	"iter"
	"os"
	"strconv"
	"testing"
)

// variable is the environment variable that holds the first seed of every test, an unsigned number.
const variable = "ENTAIL_SEED"

// roundsVariable is the environment variable that raises the number of rounds in tests on real servers and in tests
// with random histories.
const roundsVariable = "ENTAIL_ROUNDS"

// FirstSeed returns the first seed of a test: ENTAIL_SEED, or 0. If the test fails, it logs a seed that is not 0.
func FirstSeed(t testing.TB) uint64 {
	t.Helper()
	value, err := parseSeed(os.Getenv(variable))
	if err != nil {
		t.Fatalf("%s: %v; set an unsigned number", variable, err)
	}
	if value != 0 {
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s=%d repeats this", variable, value)
			}
		})
	}
	return value
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

// RoundCount returns the number of random rounds for a test: few, or ENTAIL_ROUNDS if that is more.
func RoundCount(t testing.TB, few int) int {
	t.Helper()
	text := os.Getenv(roundsVariable)
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: got %q, want a number", roundsVariable, text)
	}
	return max(n, few)
}

// parseSeed returns the value of ENTAIL_SEED as a number. An empty value means 0.
func parseSeed(value string) (uint64, error) {
	if value == "" {
		return 0, nil
	}
	return strconv.ParseUint(value, 10, 64)
}
