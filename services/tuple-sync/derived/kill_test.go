//go:build mutants

package derived

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

func TestEveryMutantDies(t *testing.T) {
	mutant.KillAll(t, ".", mutants(), []string{"."})
}
