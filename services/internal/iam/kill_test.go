//go:build mutants

package iam

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

func TestEveryMutantDies(t *testing.T) {
	mutant.KillAll(t, ".", mutants(), []string{"."}, []string{"-run", "TestWrite", "../fga"})
}
