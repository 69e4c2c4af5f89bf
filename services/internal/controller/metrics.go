package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/entail-dev/entail/services/internal/event"
)

type metrics struct {
	handled  *prometheus.CounterVec
	passes   *prometheus.CounterVec
	writes   prometheus.Histogram
	changeMS prometheus.Histogram
}

func newMetrics(registerer prometheus.Registerer, service string, waiting func() int) metrics {
	labels, made := prometheus.Labels{"service": service}, promauto.With(registerer)
	made.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "entail_keys_waiting", Help: "Keys that wait for reconciliation.", ConstLabels: labels,
	}, func() float64 { return float64(waiting()) })
	m := metrics{
		handled: made.NewCounterVec(prometheus.CounterOpts{
			Name: "entail_messages_handled_total", Help: "Messages that the service handled, by outcome.", ConstLabels: labels,
		}, []string{"outcome"}),
		passes: made.NewCounterVec(prometheus.CounterOpts{
			Name: "entail_reconciliations_total", Help: "Reconciliations, by outcome: changed, unchanged or failed.", ConstLabels: labels,
		}, []string{"outcome"}),
		writes: made.NewHistogram(prometheus.HistogramOpts{
			Name: "entail_reconciliation_writes", Help: "Number of writes to the backend, per object of a reconciliation that changed something.",
			ConstLabels: labels, Buckets: []float64{1, 2, 4, 8, 16, 64, 256},
		}),
		changeMS: made.NewHistogram(prometheus.HistogramOpts{
			Name: "entail_change_applied_seconds", Help: "Seconds from the observation of a change by the watcher until the service applied it.",
			ConstLabels: labels, Buckets: prometheus.ExponentialBuckets(0.002, 2, 16),
		}),
	}
	for _, outcome := range []string{"ok", "retried", "released", "handed_back", "parked"} {
		m.handled.WithLabelValues(outcome)
	}
	for _, outcome := range []string{"changed", "unchanged", "failed"} {
		m.passes.WithLabelValues(outcome)
	}
	return m
}

// countReconcile counts a reconciliation by outcome, and its writes per object.
func (m metrics) countReconcile(writes map[event.Key]int, err error) {
	outcome := "unchanged"
	for _, n := range writes {
		outcome = "changed"
		m.writes.Observe(float64(n))
	}
	if err != nil {
		outcome = "failed"
	}
	m.passes.WithLabelValues(outcome).Inc()
}

// observeChangeLatency records the time from the watcher's observation of a change until the change was applied.
func (m metrics) observeChangeLatency(c event.Change) {
	if !c.ObservedAt.IsZero() {
		m.changeMS.Observe(time.Since(c.ObservedAt).Seconds())
	}
}
