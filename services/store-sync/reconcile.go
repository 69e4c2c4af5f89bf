package storesync

import (
	"context"
	"errors"

	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/store-sync/apimodule"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/store"
)

// reconciler runs all providers for a Store, and then reconciles the Store. Its keys are Stores, and APIBindings, which
// carry a finalizer of their own.
type reconciler struct {
	apis *apimodule.Provider
	// providers run in this order.
	providers []module.Provider
	state     *store.State
	stores    *store.Reconciler
	outages   *setup.OutageReporter[event.Key]
}

// AffectedKeys lists the keys to reconcile after an object changed.
func (r *reconciler) AffectedKeys(k event.Key) []event.Key {
	keys := r.state.AffectedStores(k)
	for _, p := range r.providers {
		keys = append(keys, p.AffectedKeys(k)...)
	}
	return keys
}

// Reconcile applies the AuthorizationModels that the providers generate for a Store, and then reconciles the Store.
// Each step plans again when objects change during it. An error of one step does not stop the others, but without the
// modules of a provider the Store waits.
func (r *reconciler) Reconcile(ctx context.Context, p *controller.Request[event.Key]) error {
	if p.Key.GroupResource == kinds.APIBindings().GroupResource {
		return reconcile.RetryWhileStale(p.Key, func() error { return r.apis.SyncAPIBindingFinalizer(ctx, p, p.Key) })
	}
	var members []module.StatusTarget
	var errs []error
	for _, provider := range r.providers {
		var provided []module.StatusTarget
		err := reconcile.RetryWhileStale(p.Key, func() (err error) {
			provided, err = provider.SyncModels(ctx, p, p.Key)
			return err
		})
		members, errs = append(members, provided...), append(errs, err)
		if _, ready := provider.DirectModules(p.Key); !ready {
			return errors.Join(errs...)
		}
	}
	err := r.outages.RunReconcile(ctx, p.Key, func(ctx context.Context) error { return r.stores.Reconcile(ctx, p, members) })
	return errors.Join(append(errs, err)...)
}
