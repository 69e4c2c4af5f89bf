package reflector

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Metrics are the metrics of a watcher. They outlive its terms as leader.
type Metrics struct {
	published *prometheus.CounterVec
	retries   prometheus.Counter
	inFlight  prometheus.Gauge
	delay     prometheus.Histogram
	waiting   *prometheus.GaugeVec
	objects   *prometheus.GaugeVec
	sweeps    *prometheus.HistogramVec
	differing *prometheus.HistogramVec
	rewound   *prometheus.GaugeVec
	epochs    prometheus.Counter
	restored  *prometheus.CounterVec
	doubts    prometheus.Counter
	// corrections counts by cause.
	corrections *prometheus.CounterVec
}

// byKind is the label of most metrics.
const byKind = "kind"

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := promauto.With(registerer)
	m := &Metrics{
		published: made.NewCounterVec(prometheus.CounterOpts{
			Name: "entail_watcher_published_total", Help: "Publications of changes: written, stale (as new a state was there) or failed.",
		}, []string{byKind, "operation", "result"}),
		retries: made.NewCounter(prometheus.CounterOpts{
			Name: "entail_watcher_retries_total", Help: "Publications that will be tried again.",
		}),
		inFlight: made.NewGauge(prometheus.GaugeOpts{
			Name: "entail_watcher_in_flight", Help: "Publications that wait for their acknowledgement.",
		}),
		delay: made.NewHistogram(prometheus.HistogramOpts{
			Name: "entail_watcher_publication_seconds", Help: "From the observation of a change to its acknowledgement.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 18),
		}),
		waiting: made.NewGaugeVec(prometheus.GaugeOpts{
			Name: "entail_watcher_waiting", Help: "Objects whose newest state is not published yet.",
		}, []string{byKind}),
		objects: made.NewGaugeVec(prometheus.GaugeOpts{
			Name: "entail_watcher_objects", Help: "Living objects on the stream.",
		}, []string{byKind}),
		sweeps: made.NewHistogramVec(prometheus.HistogramOpts{
			Name: "entail_watcher_sweep_seconds", Help: "From the start of a sweep to its snapshot marker.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 14),
		}, []string{byKind}),
		doubts: made.NewCounter(prometheus.CounterOpts{
			Name: "entail_watcher_doubts_total", Help: "Times that all was compared again because the stream was restored, purged or truncated.",
		}),
		rewound: made.NewGaugeVec(prometheus.GaugeOpts{
			Name: "entail_watcher_rewound", Help: "1 while the API server is at an earlier resource version than it, or the stream, was before.",
		}, []string{byKind}),
		epochs: made.NewCounter(prometheus.CounterOpts{
			Name: "entail_watcher_epochs_total", Help: "How often everything was published anew because the cluster went back in time.",
		}),
		restored: made.NewCounterVec(prometheus.CounterOpts{
			Name: "entail_watcher_streams_restored_total", Help: "Streams that were missing, or had another configuration, and were restored.",
		}, []string{"stream"}),
		corrections: made.NewCounterVec(prometheus.CounterOpts{
			Name: "entail_watcher_corrections_total",
			Help: "Messages that contradicted the API server and were replaced: old states, and forgeries (refused, version, content, barrier).",
		}, []string{"cause"}),
		differing: made.NewHistogramVec(prometheus.HistogramOpts{
			Name: "entail_watcher_sweep_differences", Help: "Objects of which the stream did not hold the newest state at the end of a sweep's list.",
			Buckets: []float64{0, 1, 4, 16, 64, 256, 1024, 4096, 16384},
		}, []string{byKind}),
	}
	for _, stream := range topology.Streams() { // A rate needs a value before the first increase.
		m.restored.WithLabelValues(stream)
	}
	for _, cause := range []string{causeOld, causeRefused, causeVersion, causeContent, causeBarrier} {
		m.corrections.WithLabelValues(cause)
	}
	return m
}

func (m *Metrics) countPublication(kind string, c event.Change, ack publish.Ack, err error) {
	operation, result := "upsert", "written"
	if c.Deleted {
		operation = "delete"
	}
	switch {
	case err != nil:
		result = "failed"
	case ack.Stale:
		result = "stale"
	}
	m.published.WithLabelValues(kind, operation, result).Inc()
}

// forgetKind deletes the values of a kind that is no longer followed.
func (m *Metrics) forgetKind(kind string) {
	m.waiting.DeleteLabelValues(kind)
	m.objects.DeleteLabelValues(kind)
	m.rewound.DeleteLabelValues(kind)
}

// forgetLeaderValues deletes the values that only a leader can report.
func (m *Metrics) forgetLeaderValues() {
	m.waiting.Reset()
	m.objects.Reset()
	m.rewound.Reset()
}
