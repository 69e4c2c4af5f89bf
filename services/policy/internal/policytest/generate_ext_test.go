package policytest_test

import (
	"slices"
	"testing"

	"github.com/entail-dev/entail/services/policy/internal/policytest"
)

func TestGeneratePolicyIsDeterministic(t *testing.T) {
	t.Parallel()
	for seed := range policytest.SeedRange(t, 100) {
		first := policytest.GeneratePolicy(seed)
		if !slices.Equal(first, policytest.GeneratePolicy(seed)) {
			t.Errorf("seed %d is two policies", seed)
		}
		if slices.Equal(first, policytest.GeneratePolicy(seed+1)) {
			t.Errorf("seeds %d and %d are one policy", seed, seed+1)
		}
	}
}
