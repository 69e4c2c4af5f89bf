//go:build mutants

package webhook

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

func TestEveryMutantDies(t *testing.T) {
	mutant.KillAll(t, ".", mutants(), []string{".", "./internal/validating"})
}

func TestEveryMutantOfTheReviewDies(t *testing.T) {
	mutant.KillAll(t, ".", reviewMutants(), []string{"./internal/review"}, []string{"./internal/authorizer"})
}

// TestEveryMutantOfTheSinkDies kills mutants of the code that NATS feeds by tests with a NATS server, the shortest
// first.
func TestEveryMutantOfTheSinkDies(t *testing.T) {
	const onServers = "TestBindingOnRegisteredKind|TestIAMObjects|TestKnownStaleState|TestStaleIndex|TestMinObjectWaits|" +
		"TestGetModelStatus|TestAnswersHaveReasons|TestAccessQueriesRequire|TestWebhookRefusesGrant|" +
		"TestWebhookRefusesMembership|TestWebhookAnswersAsDeclared"
	mutant.KillAll(t, ".", sinkMutants(), []string{"."}, []string{"-tags", "integration", "-run", onServers, "."})
}
