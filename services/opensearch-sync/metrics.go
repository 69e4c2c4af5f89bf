package opensearchsync

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// metrics counts writes to OpenSearch and repaired drift.
type metrics struct{ writes, drift *prometheus.CounterVec }

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{writes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "entail_opensearch_writes_total", Help: "Requests that write to OpenSearch, by kind and result.",
	}, []string{"kind", "result"}), drift: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "entail_opensearch_drift_total", Help: "Users, roles and other entries of OpenSearch that other software changed and opensearch-sync repaired, by kind.",
	}, []string{"kind"})}
	registerer.MustRegister(m.writes, m.drift)
	for _, kind := range plan.Kinds() { // Prometheus shows an increase only after a first sample.
		m.drift.WithLabelValues(string(kind))
	}
	return m
}

func (m *metrics) countWrite(kind plan.Kind, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.writes.WithLabelValues(string(kind), result).Inc()
}
