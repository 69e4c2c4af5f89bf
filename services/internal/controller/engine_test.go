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

// byName reconciles one key for each object, and watches the configured objects.
type byName struct {
	watches []event.Key
	later   error
	fails   error
}

func (*byName) AffectedKeys(object event.Key) []string { return []string{object.Name} }

func (r *byName) Reconcile(_ context.Context, p *Request[string]) error {
	p.Watch(r.watches...)
	if r.later != nil {
		p.RequeueWithBackoff(r.later)
	}
	return r.fails
}

// The engine forgets a deleted object that no key watches, but only after all affected keys are reconciled.
func TestObjectsThatNobodyHoldsAreForgottenOnceWhatTheyTouchedIsReconciled(t *testing.T) {
	gone := event.Key{Cluster: "c", Name: "gone"}
	failure := errors.New("the backend is away")
	for name, c := range map[string]struct {
		reconciler byName
		active     bool
		remembered int
	}{
		"reconciled":                  {byName{}, true, 0},
		"the key watches it":          {byName{watches: []event.Key{gone}}, true, 1},
		"the pass fails":              {byName{fails: failure}, true, 1},
		"the key comes again later":   {byName{later: failure}, true, 1},
		"the turn is that of another": {byName{}, false, 1},
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
			e.reconcilePending(t.Context(), gone.Name, 1, c.active)
			if got := slices.Collect(maps.Keys(e.routes)); len(got) != c.remembered {
				t.Errorf("remembered are %v", got)
			}
		})
	}
}
