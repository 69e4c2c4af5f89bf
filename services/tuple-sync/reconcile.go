package tuplesync

import (
	"context"

	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/tuple-sync/declared"
	"github.com/entail-dev/entail/services/tuple-sync/derived"
)

// reconciler passes objects and keys to the reconcilers of declared and derived tuples.
type reconciler struct {
	declared *declared.Reconciler
	// derived is nil if the tuples of IAM are not kept.
	derived *derived.Reconciler
	outages *setup.OutageReporter[Key]
}

// AffectedKeys implements [controller.Reconciler].
func (r *reconciler) AffectedKeys(object event.Key) []Key {
	var keys []Key
	for _, k := range r.declared.AffectedKeys(object) {
		keys = append(keys, fromDeclared(k))
	}
	if r.derived == nil {
		return keys
	}
	for _, k := range r.derived.AffectedKeys(object) {
		keys = append(keys, fromDerived(k))
	}
	return keys
}

// Priority implements [controller.Prioritizer].
func (r *reconciler) Priority(k Key) int {
	if of, is := k.derivedKey(); is {
		return r.derived.Priority(of)
	}
	return 0
}

// Reconcile implements [controller.Reconciler].
func (r *reconciler) Reconcile(ctx context.Context, p *controller.Request[Key]) error {
	if of, is := p.Key.derivedKey(); is {
		pass := derived.ReconcileRequest{Key: of, Resync: p.Resync, Reporter: p, Enqueue: func(priority int, keys ...derived.Key) {
			for _, k := range keys {
				p.Enqueue(priority, fromDerived(k))
			}
		}}
		return r.outages.RunReconcile(ctx, p.Key, func(ctx context.Context) error { return r.derived.Reconcile(ctx, pass) })
	}
	return r.outages.RunReconcile(ctx, p.Key, func(ctx context.Context) error { return r.declared.Reconcile(ctx, p, p.Key.declaredKey(), p.Resync) })
}
