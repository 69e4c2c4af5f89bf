//go:build mutants

package informer_test

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

func TestEveryMutantDies(t *testing.T) { mutant.KillAll(t, ".", mutants(), []string{"."}) }
