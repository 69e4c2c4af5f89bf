//go:build integration && !race

package conformance

import "testing"

// TestSpiceDBAccepts10000CheckedPolicies is separate because the race detector makes it slow.
func TestSpiceDBAccepts10000CheckedPolicies(t *testing.T) {
	t.Parallel()
	testSpiceDBCorpus(t, 10_000)
}
