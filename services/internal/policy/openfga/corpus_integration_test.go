//go:build integration

package openfga

import "testing"

// TestOpenFGATakesTenThousandPoliciesThatPassItsCheck is apart because the race detector makes it slow.
func TestOpenFGATakesTenThousandPoliciesThatPassItsCheck(t *testing.T) {
	t.Parallel()
	testCorpus(t, 10_000)
}
