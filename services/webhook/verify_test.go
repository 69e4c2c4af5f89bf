package webhook

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/entail-dev/entail/services/internal/authz"
)

// deciderFunc is a decider without a proof.
type deciderFunc func() (bool, error)

func (f deciderFunc) Decide(context.Context, authz.Query) (authz.Proof, bool, error) {
	allowed, err := f()
	return authz.Proof{}, allowed, err
}

func yes() (bool, error) { return true, nil }

func TestDecisionVerifierReportsLastingDifferenceOnly(t *testing.T) {
	down := errors.New("down")
	for name, c := range map[string]struct {
		// openFGA returns the answer of OpenFGA after some time. The index always answers yes.
		openFGA func(after time.Duration) (bool, error)
		fresh   error
		want    string
	}{
		"they agree":                  {func(time.Duration) (bool, error) { return true, nil }, nil, same},
		"OpenFGA follows":             {func(after time.Duration) (bool, error) { return after > 10*time.Second, nil }, nil, late},
		"OpenFGA says something else": {func(time.Duration) (bool, error) { return false, nil }, nil, different},
		"OpenFGA is down":             {func(time.Duration) (bool, error) { return true, down }, nil, unknown},
		"OpenFGA goes down meanwhile": {func(after time.Duration) (bool, error) {
			return false, map[bool]error{true: down}[after > 3*time.Second]
		}, nil, unknown},
		"the index may not be asked now": {func(time.Duration) (bool, error) { return false, nil }, down, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				v := newDecisionVerifier(deciderFunc(yes), deciderFunc(func() (bool, error) { return c.openFGA(time.Since(began)) }), 1)
				var log strings.Builder
				v.fresh, v.log = func() error { return c.fresh }, slog.New(slog.NewTextHandler(&log, nil))
				if got := v.compareUntilEqual(t.Context(), authz.Query{Subject: authz.Subject{User: "alice", Groups: []string{"secret"}}, Name: "web"}); got != c.want {
					t.Errorf("got outcome %s, want %s", got, c.want)
				}
				told := strings.Contains(log.String(), "user=alice") && strings.Contains(log.String(), "name=web")
				if told != (c.want == different) || strings.Contains(log.String(), "secret") {
					t.Errorf("got log %q", log.String())
				}
			})
		})
	}
}

func TestDecisionVerifierDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		held := make(chan struct{})
		v := newDecisionVerifier(deciderFunc(yes), deciderFunc(func() (bool, error) { <-held; return true, nil }), 1)
		v.fresh, v.log = func() error { return nil }, slog.New(slog.DiscardHandler)
		ended := make(chan error, 1)
		go func() { ended <- v.compareQueuedQueries(ctx) }()
		const asked = 100
		began := time.Now()
		for range asked {
			if _, allowed, err := v.Decide(ctx, authz.Query{}); !allowed || err != nil {
				t.Fatal(allowed, err)
			}
			synctest.Wait()
		}
		if time.Since(began) != 0 {
			t.Error("Decide waited for a comparison")
		}
		skips := testutil.ToFloat64(v.outcomes.WithLabelValues(skipped))
		if skips == 0 || skips >= asked {
			t.Errorf("got %v of %d comparisons skipped", skips, asked)
		}
		close(held)
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil || testutil.ToFloat64(v.outcomes.WithLabelValues(same))+skips != asked {
			t.Errorf("%v were compared, %v", testutil.ToFloat64(v.outcomes.WithLabelValues(same)), err)
		}
	})
}

func TestDecisionVerifierComparesShare(t *testing.T) {
	v := newDecisionVerifier(deciderFunc(yes), deciderFunc(yes), 0.25)
	for _, drawn := range []float64{0, 0.2499, 0.25, 0.99} {
		v.random = func() float64 { return drawn }
		_, _, _ = v.Decide(t.Context(), authz.Query{})
	}
	if len(v.queue) != 2 {
		t.Errorf("%d of 4 are compared, want 2", len(v.queue))
	}
}
