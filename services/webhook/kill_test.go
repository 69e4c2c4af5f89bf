//go:build mutants

package webhook

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

func TestEveryMutantDies(t *testing.T) {
	mutant.Kill(t, ".", mutants(), []string{".", "./internal/guard"})
}

func TestEveryMutantOfTheReviewDies(t *testing.T) {
	mutant.Kill(t, ".", reviewMutants(), []string{"./internal/review"}, []string{"./internal/authorizer"})
}

// What a bus feeds is tested with one: the shortest tests first.
func TestEveryMutantOfTheSinkDies(t *testing.T) {
	const onServers = "TestABindingOnAnObject|TestObjectsOfIAM|TestNobodyIsTold|TestTheAPIServerIsToldNothing|TestWhatWasJustWritten|" +
		"TestTheStatusOfTheModel|TestAnswersSayWhy|TestWhatIsSaidAgain|TestEverybodyMayAsk|TestWhoHasLost|TestNobodyGives|TestNobodyJoins|TestWhateverHappens"
	mutant.Kill(t, ".", sinkMutants(), []string{"."}, []string{"-tags", "integration", "-run", onServers, "."})
}
