package mirror

import (
	"context"
	"fmt"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
)

// tail looks at the store as a whole, and does so again soon.
func (r *Reconciler) tail(ctx context.Context, p Pass) error {
	n, err := r.declared(ctx)
	if n == nil || err != nil {
		return err // The Store will tell when there is one.
	}
	// OpenFGA takes tuples for a store that was deleted, and nobody sees them. store-sync makes another.
	_, found, err := r.OpenFGA.GetStore(ctx, n.of.storeID)
	if err == nil && !found {
		r.copy.forget()
		err = fault.Unavailable(fmt.Errorf("following %s: %w", n.of.storeID, fga.ErrStoreNotFound))
	}
	if err != nil {
		return err
	}
	if err := r.copy.follow(ctx, n.of.storeID, p.Resync); err != nil {
		return err
	}
	if r.swept != n.of {
		r.everything(n, p)
		r.swept = n.of
	}
	for _, object := range r.copy.doubts() {
		p.Enqueue(revokes, Key{sort: tuples, object: object})
	}
	p.Reporter.Again(interval)
	return nil
}

// everything asks for all objects that hold something, or are to, and for all statuses.
func (r *Reconciler) everything(n *snapshot, p Pass) {
	r.enqueue(n, p, r.copy.known())
	for _, kind := range r.State.kinds {
		for _, f := range kind.all() {
			r.enqueue(n, p, r.State.own(f.change.Key))
			p.Enqueue(statuses, Key{sort: status, owner: f.change.Key})
		}
	}
}

// enqueue asks for objects, those that lose something first.
func (r *Reconciler) enqueue(n *snapshot, p Pass, objects []string) {
	for _, object := range objects {
		priority := changes
		has, _ := r.copy.has(n.of.storeID, object)
		if _, remove := r.difference(n, object, has); len(remove) > 0 {
			priority = revokes
		}
		p.Enqueue(priority, Key{sort: tuples, object: object})
	}
}
