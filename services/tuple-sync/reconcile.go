package tuplesync

import (
	"context"

	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/tuple-sync/ledger"
)

// reconciler leads objects and keys to who keeps tuples for them.
type reconciler struct {
	ledger  *ledger.Reconciler
	outages *controller.Outages[Key]
}

// Keys implements [consume.Reconciler].
func (r *reconciler) Keys(object event.Key) []Key {
	var keys []Key
	for _, k := range r.ledger.Keys(object) {
		keys = append(keys, Key{Ledger: k})
	}
	return keys
}

// Reconcile implements [consume.Reconciler].
func (r *reconciler) Reconcile(ctx context.Context, p *consume.Pass[Key]) error {
	return r.outages.Watch(ctx, p.Key, func(ctx context.Context) error { return r.ledger.Reconcile(ctx, p, p.Key.Ledger, p.Resync) })
}
