//go:build integration && !race

package conformance

import "testing"

// TestSpiceDBTakesTenThousandPoliciesThatPassItsCheck is separate because the race detector makes it slow.
func TestSpiceDBTakesTenThousandPoliciesThatPassItsCheck(t *testing.T) {
	t.Parallel()
	testSpiceDBCorpus(t, 10_000)
}
