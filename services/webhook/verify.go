package webhook

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/truncate"
)

const (
	// maxVerified bounds the comparisons at a time, and those that wait. Others are skipped.
	maxVerified = 16
	// settling bounds the time that OpenFGA may lag behind. settlingStep is the interval between two comparisons.
	settling     = 30 * time.Second
	settlingStep = 2 * time.Second
	// verifyTimeout bounds one comparison.
	verifyTimeout = 5 * time.Second
	// maxNamed bounds each value of a question in the log.
	maxNamed = 200
)

// Outcomes of a comparison.
const (
	same      = "same"
	late      = "late"
	different = "different"
	unknown   = "unknown"
	skipped   = "skipped"
)

// decisionVerifier decides by the index, and compares a share of the answers with OpenFGA in the background.
type decisionVerifier struct {
	index, openFGA Decider
	share          float64
	// fresh returns an error if the index may not be used now.
	fresh    func() error
	random   func() float64
	queue    chan authz.Query
	outcomes *prometheus.CounterVec
	log      *slog.Logger
}

func newDecisionVerifier(index, openFGA Decider, share float64) *decisionVerifier {
	v := &decisionVerifier{
		index: index, openFGA: openFGA, share: share, random: rand.Float64, queue: make(chan authz.Query, maxVerified),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "entail_verified_decisions_total", Help: "Answers of the authorization index that were compared with OpenFGA, by outcome.",
		}, []string{"outcome"}),
	}
	for _, outcome := range []string{same, late, different, unknown, skipped} { // Prometheus shows an increase only from an existing value.
		v.outcomes.WithLabelValues(outcome)
	}
	return v
}

// Decide implements [Decider] by the index.
func (v *decisionVerifier) Decide(ctx context.Context, q authz.Query) (why authz.Proof, allowed bool, err error) {
	why, allowed, err = v.index.Decide(ctx, q)
	if err == nil && v.random() < v.share {
		select {
		case v.queue <- q:
		default:
			v.outcomes.WithLabelValues(skipped).Inc()
		}
	}
	return why, allowed, err
}

// compareQueuedQueries compares queued questions until ctx ends, and waits for the comparisons that have begun.
func (v *decisionVerifier) compareQueuedQueries(ctx context.Context) error {
	turns := make(chan struct{}, maxVerified)
	for {
		select {
		case <-ctx.Done():
			for range maxVerified { // Wait for the comparisons that have begun.
				turns <- struct{}{}
			}
			return nil
		case q := <-v.queue:
			select {
			case turns <- struct{}{}:
				go func() {
					defer func() { <-turns }()
					v.outcomes.WithLabelValues(v.compareUntilEqual(ctx, q)).Inc()
				}()
			case <-ctx.Done():
			}
		}
	}
}

// compareUntilEqual compares both answers until they agree or settling has passed. OpenFGA lags behind the index, so only a
// lasting difference counts.
func (v *decisionVerifier) compareUntilEqual(ctx context.Context, q authz.Query) string {
	for began := time.Now(); ; {
		want, got, err := v.decideByBoth(ctx, q)
		waited := time.Since(began)
		switch {
		case err != nil:
			return unknown
		case want == got && waited < settlingStep:
			return same
		case want == got:
			return late
		case waited >= settling:
			v.logDifference(ctx, q, want)
			return different
		case !backoff.Sleep(ctx, settlingStep):
			return unknown
		}
	}
}

func (v *decisionVerifier) decideByBoth(ctx context.Context, q authz.Query) (index, openFGA bool, err error) {
	if err := v.fresh(); err != nil {
		return false, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	if _, openFGA, err = v.openFGA.Decide(ctx, q); err == nil {
		_, index, err = v.index.Decide(ctx, q)
	}
	return index, openFGA, err
}

// logDifference logs the question and both answers. It logs nothing about the rights of others.
func (v *decisionVerifier) logDifference(ctx context.Context, q authz.Query, index bool) {
	said := func(key, value string) slog.Attr { return slog.String(key, truncate.Text(value, maxNamed)) }
	v.log.LogAttrs(ctx, slog.LevelError, "OpenFGA and the index differ", slog.Bool("index", index), slog.Bool("openfga", !index),
		said("user", q.User), said("account", q.Account), slog.Int("groups", len(q.Groups)),
		said("permission", q.Permission), said("type", q.Type), said("namespace", q.Namespace), said("name", q.Name))
}
