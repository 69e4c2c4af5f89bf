//go:build integration && !race

package conformance

import "testing"

// TestOpenFGAAccepts10000CheckedPolicies is separate because the race detector makes it slow.
func TestOpenFGAAccepts10000CheckedPolicies(t *testing.T) {
	t.Parallel()
	testOpenFGACorpus(t, 10_000)
}
