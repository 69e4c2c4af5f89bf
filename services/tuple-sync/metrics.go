package tuplesync

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/entail-dev/entail/services/tuple-sync/derived"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// writeMetrics counts writes to OpenFGA.
type writeMetrics struct {
	tuples     *prometheus.CounterVec
	difference prometheus.Histogram
	restored   prometheus.Counter
}

// newWriteMetrics registers the metrics. unreadable counts the objects whose record cannot be read.
func newWriteMetrics(registerer prometheus.Registerer, unreadable func() int) *writeMetrics {
	m := &writeMetrics{tuples: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "entail_tuples_total", Help: "Tuples that tuple-sync added or removed in OpenFGA, or that OpenFGA refused, by outcome.",
	}, []string{"outcome"}), difference: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "entail_tuples_difference", Help: "Number of tuples that one write added to and removed from a store.",
		Buckets: []float64{1, 4, 16, 64, 256, 1024, 4096},
	}), restored: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "entail_tuples_restored_total", Help: "Removed tuples that a restore of OpenFGA brought back, and that tuple-sync removed again.",
	})}
	for _, outcome := range []string{"added", "removed", "refused"} {
		m.tuples.WithLabelValues(outcome)
	}
	registerer.MustRegister(m.tuples, m.difference, m.restored, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "entail_tuples_unreadable_records", Help: "Objects whose tuples tuple-sync does not change, because it cannot read the record in their status.",
	}, func() float64 { return float64(unreadable()) }))
	return m
}

func (m *writeMetrics) countWrite(w tuple.Write) {
	m.difference.Observe(float64(len(w.Add) + len(w.Remove)))
	m.tuples.WithLabelValues("added").Add(float64(len(w.Add)))
	m.tuples.WithLabelValues("removed").Add(float64(len(w.Remove)))
}

func (m *writeMetrics) countRefusedTuples(n int) { m.tuples.WithLabelValues("refused").Add(float64(n)) }

// lostReferencesAge bounds the age of the number of lost references. To count them takes a pass over all bindings.
const lostReferencesAge = 30 * time.Second

// newLostReferencesGauge returns the gauge of names in bindings whose objects are gone for good.
func newLostReferencesGauge(incomplete func() error, list func() ([]derived.LostReference, []string)) prometheus.GaugeFunc {
	var (
		mu      sync.Mutex
		counted time.Time
		last    float64
	)
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "entail_iam_lost_references", Help: "Names in PolicyBindings and GroupMemberships whose objects are gone for good.",
	}, func() float64 {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); incomplete() == nil && now.Sub(counted) >= lostReferencesAge {
			lost, _ := list()
			counted, last = now, float64(len(lost))
		}
		return last
	})
}
