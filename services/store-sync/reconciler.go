package storesync

import (
	"context"
	"errors"
	"log/slog"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/view"
	policies "github.com/entail-dev/entail/services/store-sync/policymodule/plan"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// reconciler brings OpenFGA and the statuses to what the view says, one Store at a time.
type reconciler struct {
	objects
	view   *view.View
	kube   *kube.Client
	fga    *fga.Client
	log    *slog.Logger
	merges *merges
	// policies remembers what became of PolicyDocuments.
	policies memory[policies.Input, policies.Plan]
	// announce tells caches of a new model.
	announce func(context.Context, *eventv1.StoreChanged) error
}

// maxSteps is more than any pass takes.
const maxSteps = 24

var errEndless = errors.New("the pass does not come to an end")

// Reconcile makes the AuthorizationModels that APIs and PolicyDocuments ask for in a Store, and
// then brings the Store in step. What fails for one of them holds up nothing else.
func (r *reconciler) Reconcile(ctx context.Context, key event.Key, p consume.Pass) ([]consume.Result, error) {
	if key.GroupResource == kinds.Bindings().GroupResource {
		return r.holdBinding(ctx, key)
	}
	known, discoverErr := r.discover(ctx, key)
	if !known {
		return nil, discoverErr
	}
	made, makeErr := r.generate(ctx, key)
	documents, registerErr := r.register(ctx, key)
	results, err := r.bring(ctx, begin(r, key, p.Resync, documents))
	return append(made, results...), errors.Join(err, discoverErr, makeErr, registerErr)
}

// bring asks package plan what to do about a Store and does it until there is nothing left.
func (r *reconciler) bring(ctx context.Context, s *pass) ([]consume.Result, error) {
	for range maxSteps {
		action := plan.Next(s.in, s.facts)
		err := s.do(ctx, action)
		switch {
		case errors.Is(err, kube.ErrNotFound):
			// Gone, or another of its name now: the event that says so is on its way.
			return nil, s.abandon(ctx)
		case errors.Is(err, fga.ErrStoreNotFound):
			s.facts.Missing = action.StoreID
		case err != nil:
			return nil, err
		case action.Verb == plan.WriteStatus:
			return s.results, nil
		}
	}
	return nil, errEndless
}
