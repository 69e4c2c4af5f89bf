package opensearchsync

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// A change that conflicts was planned before another client wrote. To send it again could overwrite what that client wrote.
func TestMakeChangePlansAgainAfterConflict(t *testing.T) {
	lost := errors.New("no answer")
	for name, c := range map[string]struct {
		err       error
		stale     bool
		contested bool
	}{
		"no error":   {},
		"a conflict": {err: search.ErrConflict, stale: true},
		"a refusal":  {err: &search.RefusedError{}},
		"no answer":  {err: lost, contested: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				contests := newUncertainWrites(time.Now, settling, func(event.Key, string) bool { return true })
				a, key, calls := planApplier{metrics: newWriteMetrics(prometheus.NewRegistry()), contests: contests}, Key{Kind: plan.Roles}, 0
				err := a.makeChange(t.Context(), key, func() error { calls++; return c.err })
				if calls != 1 || !errors.Is(err, c.err) || errors.Is(err, reconcile.ErrStale) != c.stale {
					t.Errorf("got %v after %d calls; want one call, stale: %t", err, calls, c.stale)
				}
				if got := contests.remainingUncertainty(key) > 0; got != c.contested {
					t.Errorf("got an uncertain change: %t, want %t", got, c.contested)
				}
			})
		})
	}
}
