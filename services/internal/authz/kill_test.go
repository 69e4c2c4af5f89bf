//go:build mutants

package authz

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

func TestEveryMutantDies(t *testing.T) {
	t.Setenv("WORLDS", "200")
	mutant.KillAll(t, ".", mutants(), []string{"."})
}
