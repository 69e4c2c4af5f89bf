//go:build integration && !race

package conformance

import "testing"

// TestOpenFGATakesTenThousandPoliciesThatPassItsCheck is separate because the race detector makes it slow.
func TestOpenFGATakesTenThousandPoliciesThatPassItsCheck(t *testing.T) {
	t.Parallel()
	testOpenFGACorpus(t, 10_000)
}
