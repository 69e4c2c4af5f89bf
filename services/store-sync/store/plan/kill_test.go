//go:build mutants

package plan_test

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

func TestRandomHistoriesFindEachMutant(t *testing.T) {
	t.Setenv("ENTAIL_ROUNDS", "300")
	mutant.KillAll(t, services, mutantsOfOrder(), []string{"-run", "RandomHistories|RareHistories", "."})
}

func TestRecordMutantsAreKilled(t *testing.T) {
	mutant.KillAll(t, services, mutantsOfRecords(), []string{"../../model"}, []string{"../../policymodule/plan"}, []string{"."}, []string{services + "/tuple-sync/declared/plan"})
}
