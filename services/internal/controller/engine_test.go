package controller

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
)

// perObjectReconciler reconciles one key for each object, and watches the configured objects.
type perObjectReconciler struct {
	watches []event.Key
	later   error
	fails   error
}

func (*perObjectReconciler) AffectedKeys(object event.Key) []string { return []string{object.Name} }

func (r *perObjectReconciler) Reconcile(_ context.Context, p *Request[string]) error {
	p.RequeueOnChange(r.watches...)
	if r.later != nil {
		p.RequeueWithBackoff(r.later)
	}
	return r.fails
}

// The engine forgets a deleted object that no key watches, but only after all affected keys are reconciled.
func TestRouteOfDeletedObjectIsDroppedAfterItsKeysAreReconciled(t *testing.T) {
	gone := event.Key{Cluster: "c", Name: "gone"}
	failure := errors.New("the backend is away")
	for name, c := range map[string]struct {
		reconciler perObjectReconciler
		active     bool
		remembered int
	}{
		"reconciled":                  {perObjectReconciler{}, true, 0},
		"the key watches it":          {perObjectReconciler{watches: []event.Key{gone}}, true, 1},
		"the pass fails":              {perObjectReconciler{fails: failure}, true, 1},
		"the key comes again later":   {perObjectReconciler{later: failure}, true, 1},
		"the turn is that of another": {perObjectReconciler{}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			v := informer.New(informer.Config{})
			e := newEngine(Config{View: v, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()}.withDefaults(), Reconciler[string](&c.reconciler))
			defer e.queue.keys.ShutDown()
			e.updateRoute(gone)
			for range 2 {
				e.enqueueAll(false)
			}
			if e.queue.keys.Len() != 1 {
				t.Fatalf("%d keys wait: what the object touched has to be looked at", e.queue.keys.Len())
			}
			e.reconcileIfLeader(t.Context(), gone.Name, 1, c.active)
			if got := slices.Collect(maps.Keys(e.routes)); len(got) != c.remembered {
				t.Errorf("remembered are %v", got)
			}
		})
	}
}
