package storesync

import (
	"context"
	"errors"

	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/store-sync/apimodule"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/store"
)

// reconciler gives each provider its turn at a Store, and then the Store itself. Its keys are
// Stores, and APIBindings, which have a finalizer of their own.
type reconciler struct {
	apis *apimodule.Provider
	// providers are asked in this order.
	providers []module.Provider
	state     *store.State
	stores    *store.Reconciler
	view      *view.View
}

// Keys lists the Stores to look at when an object changed.
func (r *reconciler) Keys(k event.Key) []event.Key {
	keys := r.state.Keys(k)
	for _, p := range r.providers {
		keys = append(keys, p.Keys(k)...)
	}
	return keys
}

// Reconcile implements consume.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, key event.Key, p consume.Pass) ([]consume.Result, error) {
	reports := &reporter{view: r.view, writes: map[event.Key]int{}}
	err := r.reconcile(ctx, store.Pass{Reporter: reports, Key: key, Resync: p.Resync})
	return reports.results, err
}

// reconcile has the AuthorizationModels made that APIs and PolicyDocuments ask for in a Store, and
// then brings the Store in step. What fails for one of them holds up nothing else.
func (r *reconciler) reconcile(ctx context.Context, p store.Pass) error {
	if p.Key.GroupResource == kinds.Bindings().GroupResource {
		return r.apis.Hold(ctx, p, p.Key)
	}
	var errs []error
	for _, provider := range r.providers {
		members, err := provider.Sync(ctx, p, p.Key)
		p.Members, errs = append(p.Members, members...), append(errs, err)
		if _, ready := provider.Modules(p.Key); !ready {
			return errors.Join(errs...)
		}
	}
	return errors.Join(append(errs, r.stores.Reconcile(ctx, p))...)
}
