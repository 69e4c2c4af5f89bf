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
			Name: "entail_watcher_published_total",
			Help: "Publications of changes, by kind, operation and result. stale means that the stream had the same or a newer state.",
		}, []string{byKind, "operation", "result"}),
		retries: made.NewCounter(prometheus.CounterOpts{
			Name: "entail_watcher_retries_total", Help: "Publications that failed and are tried again.",
		}),
		inFlight: made.NewGauge(prometheus.GaugeOpts{
			Name: "entail_watcher_in_flight", Help: "Publications that NATS has not acknowledged yet.",
		}),
		delay: made.NewHistogram(prometheus.HistogramOpts{
			Name: "entail_watcher_publication_seconds", Help: "Seconds from the observation of a change to its acknowledgement by NATS.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 18),
		}),
		waiting: made.NewGaugeVec(prometheus.GaugeOpts{
			Name: "entail_watcher_waiting", Help: "Objects whose newest state is not published yet, by kind.",
		}, []string{byKind}),
		objects: made.NewGaugeVec(prometheus.GaugeOpts{
			Name: "entail_watcher_objects", Help: "Objects on the stream that are not deleted, by kind.",
		}, []string{byKind}),
		sweeps: made.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "entail_watcher_sweep_seconds",
			Help:    "Seconds from the start of a sweep to its snapshot marker. A sweep compares all objects of a kind with the stream.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 14),
		}, []string{byKind}),
		doubts: made.NewCounter(prometheus.CounterOpts{
			Name: "entail_watcher_doubts_total", Help: "Comparisons of everything with the stream, because the stream was restored, purged or truncated.",
		}),
		rewound: made.NewGaugeVec(prometheus.GaugeOpts{
			Name: "entail_watcher_rewound", Help: "1 while the API server reports an earlier resource version than before, or than the stream has.",
		}, []string{byKind}),
		epochs: made.NewCounter(prometheus.CounterOpts{
			Name: "entail_watcher_epochs_total",
			Help: "Epochs that the watcher began. It then publishes everything again, because the cluster was restored from a backup.",
		}),
		restored: made.NewCounterVec(prometheus.CounterOpts{
			Name: "entail_watcher_streams_restored_total", Help: "Streams that the watcher restored because they were missing or had another configuration.",
		}, []string{"stream"}),
		corrections: made.NewCounterVec(prometheus.CounterOpts{
			Name: "entail_watcher_corrections_total",
			Help: "Messages that contradicted the API server and were replaced, by cause. Every cause except old is a forgery.",
		}, []string{"cause"}),
		differing: made.NewHistogramVec(prometheus.HistogramOpts{
			Name: "entail_watcher_sweep_differences", Help: "Objects per sweep whose newest state was not on the stream.",
			Buckets: []float64{0, 1, 4, 16, 64, 256, 1024, 4096, 16384},
		}, []string{byKind}),
	}
	for _, stream := range topology.StreamNames() { // A rate needs a value before the first increase.
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
