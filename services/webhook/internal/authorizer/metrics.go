package authorizer

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts decisions and their duration. No label contains a value of a request.
type metrics struct {
	decisions *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "authz_decisions_total", Help: "SubjectAccessReviews of the API server, by decision and scope.",
		}, []string{"decision", "scope"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "authz_request_duration_seconds", Help: "Seconds until webhook answered a SubjectAccessReview, by decision and scope.",
			Buckets: []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}, []string{"decision", "scope"}),
	}
	return m, errors.Join(registerer.Register(m.decisions), registerer.Register(m.seconds))
}

func (m *metrics) observeDecision(d *reviewDecision, err error, took time.Duration) {
	outcome := d.outcomeLabel()
	if err != nil {
		outcome = "error"
	}
	m.decisions.WithLabelValues(outcome, d.scope).Inc()
	m.seconds.WithLabelValues(outcome, d.scope).Observe(took.Seconds())
}

// outcomeLabel returns the label of the decision by the declared objects.
func (d *reviewDecision) outcomeLabel() string {
	switch {
	case d.would.Allowed:
		return "allowed"
	case d.would.Denied:
		return "denied"
	}
	return "no_opinion"
}
