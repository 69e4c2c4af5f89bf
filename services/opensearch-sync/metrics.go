package opensearchsync

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// metrics tell what is written to OpenSearch.
type metrics struct{ writes *prometheus.CounterVec }

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{writes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "entail_opensearch_writes_total", Help: "Requests that change OpenSearch, by kind and whether they were done.",
	}, []string{"kind", "result"})}
	registerer.MustRegister(m.writes)
	return m
}

func (m *metrics) wrote(kind plan.Kind, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.writes.WithLabelValues(string(kind), result).Inc()
}
