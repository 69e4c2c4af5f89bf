package tuplesync

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// metrics counts writes to OpenFGA.
type metrics struct {
	tuples     *prometheus.CounterVec
	difference prometheus.Histogram
	restored   prometheus.Counter
}

// newMetrics registers the metrics. unreadable counts the objects whose record cannot be read.
func newMetrics(registerer prometheus.Registerer, unreadable func() int) *metrics {
	m := &metrics{tuples: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "entail_tuples_total", Help: "Tuples that OpenFGA was told to add or remove, or refused.",
	}, []string{"outcome"}), difference: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "entail_tuples_difference", Help: "Tuples that a store lacked or had too many, where there were any.",
		Buckets: []float64{1, 4, 16, 64, 256, 1024, 4096},
	}), restored: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "entail_tuples_restored_total", Help: "Tuples that were removed again, because a restored OpenFGA had them as before their removal.",
	})}
	for _, outcome := range []string{"added", "removed", "refused"} {
		m.tuples.WithLabelValues(outcome)
	}
	registerer.MustRegister(m.tuples, m.difference, m.restored, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "entail_tuples_unreadable_records", Help: "Objects whose tuples are not changed, because their record cannot be read.",
	}, func() float64 { return float64(unreadable()) }))
	return m
}

func (m *metrics) countWrite(w tuple.Write) {
	m.difference.Observe(float64(len(w.Add) + len(w.Remove)))
	m.tuples.WithLabelValues("added").Add(float64(len(w.Add)))
	m.tuples.WithLabelValues("removed").Add(float64(len(w.Remove)))
}

func (m *metrics) countRefused(n int) { m.tuples.WithLabelValues("refused").Add(float64(n)) }
