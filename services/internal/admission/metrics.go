package admission

import "github.com/prometheus/client_golang/prometheus"

// metrics counts the checked requests and measures the time for each.
type metrics struct {
	reviews *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	expiry  prometheus.Gauge
}

// failed is the outcome of a request that was refused because it could not be checked.
const failed = "failed"

func newMetrics(registerer prometheus.Registerer, webhooks []Webhook) *metrics {
	m := &metrics{
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "entail_admission_requests_total", Help: "Admission requests of the API server, by webhook and outcome.",
		}, []string{"webhook", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "entail_admission_seconds", Help: "Seconds until the webhook answered an admission request.",
			Buckets: []float64{.001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"webhook"}),
		expiry: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "entail_admission_certificate_expiry_timestamp_seconds", Help: "Unix time at which the certificate of the webhooks expires.",
		}),
	}
	for _, webhook := range webhooks { // A rate needs a value before the first failure.
		m.reviews.WithLabelValues(webhook.Name, failed)
	}
	registerer.MustRegister(m.reviews, m.seconds, m.expiry)
	return m
}
