package opensearchsync

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// writeMetrics counts writes to OpenSearch and repaired drift.
type writeMetrics struct{ writes, drift *prometheus.CounterVec }

func newWriteMetrics(registerer prometheus.Registerer) *writeMetrics {
	m := &writeMetrics{writes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "entail_opensearch_writes_total", Help: "Requests that write to OpenSearch, by kind and result.",
	}, []string{"kind", "result"}), drift: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "entail_opensearch_drift_total",
		Help: "Users, roles and other entries of OpenSearch that other software changed and opensearch-sync repaired, by kind.",
	}, []string{"kind"})}
	registerer.MustRegister(m.writes, m.drift)
	for _, kind := range plan.AllKinds() { // Prometheus shows an increase only after a first sample.
		m.drift.WithLabelValues(string(kind))
	}
	return m
}

func (m *writeMetrics) countWrite(kind plan.EntityKind, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.writes.WithLabelValues(string(kind), result).Inc()
}
