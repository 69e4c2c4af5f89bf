package tuplesync

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// metrics tell what is written to OpenFGA.
type metrics struct{ tuples *prometheus.CounterVec }

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{tuples: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "entail_tuples_total", Help: "Tuples that OpenFGA was told to add or remove, or refused.",
	}, []string{"outcome"})}
	registerer.MustRegister(m.tuples)
	return m
}

func (m *metrics) wrote(w tuple.Write) {
	m.tuples.WithLabelValues("added").Add(float64(len(w.Add)))
	m.tuples.WithLabelValues("removed").Add(float64(len(w.Remove)))
}

func (m *metrics) refused(n int) { m.tuples.WithLabelValues("refused").Add(float64(n)) }
