package controller_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/entail-dev/entail/services/internal/controller"
)

func TestMetricsStartAtZeroForEveryOutcome(t *testing.T) {
	b := newTestStreams(t) // Without a snapshot marker the controller does no work.
	registry := prometheus.NewRegistry()
	b.start(b.js, func(c *controller.Config) { c.Metrics = registry })
	const want = `
# HELP entail_messages_handled_total Messages that the service handled, by outcome.
# TYPE entail_messages_handled_total counter
entail_messages_handled_total{outcome="handed_back",service="test"} 0
entail_messages_handled_total{outcome="ok",service="test"} 0
entail_messages_handled_total{outcome="parked",service="test"} 0
entail_messages_handled_total{outcome="released",service="test"} 0
entail_messages_handled_total{outcome="retried",service="test"} 0
# HELP entail_reconciliations_total Reconciliations, by outcome: changed, unchanged or failed.
# TYPE entail_reconciliations_total counter
entail_reconciliations_total{outcome="changed",service="test"} 0
entail_reconciliations_total{outcome="failed",service="test"} 0
entail_reconciliations_total{outcome="unchanged",service="test"} 0
`
	eventually(t, func() error {
		return testutil.GatherAndCompare(registry, strings.NewReader(want), "entail_messages_handled_total", "entail_reconciliations_total")
	})
}
