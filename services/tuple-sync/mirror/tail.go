package mirror

import (
	"context"

	"github.com/entail-dev/entail/services/internal/event"
)

// tail examines the store as a whole, and runs again after interval.
func (r *Reconciler) tail(ctx context.Context, p Pass) error {
	err := r.locate(ctx, p)
	if r.tell(ctx, p); err != nil {
		return err
	}
	n, err := r.declared(ctx)
	if err != nil {
		return err
	}
	if n == nil { // A change of the Store wakes the tail; an unadopted store is polled.
		if store, known := r.State.where(); known && !r.State.ends(store) {
			p.Reporter.Again(interval)
		}
		return nil
	}
	if err := r.copy.follow(ctx, n.of.storeID); err != nil {
		return err
	}
	if p.Resync {
		p.Enqueue(statuses, Key{sort: whole})
		for _, kind := range r.State.all() {
			kind.rouse()
		}
	}
	told := r.State.observed.news()
	if missed, loaded := r.missed.Swap(false), r.copy.loaded(); missed || r.swept != n.of || r.loaded != loaded {
		r.everything(n, p)
		r.asked.Store(&n.moment)
		r.swept, r.loaded = n.of, loaded
	} else {
		r.observe(n, p, told)
	}
	if r.copy.owes() {
		p.Enqueue(mayTake, Key{sort: back})
	}
	r.dispel(p)
	r.emptied.Store(n.of.ends && r.copy.empty())
	p.Reporter.Again(interval)
	return nil
}

// back runs [mirrored.lookBack] for the present store, beside the passes that decide.
func (r *Reconciler) back(ctx context.Context, p Pass) error {
	n, err := r.declared(ctx)
	if n == nil || err != nil || !r.copy.is(n.of.storeID) {
		return err
	}
	err = r.copy.lookBack(ctx, n.of.storeID)
	r.dispel(p)
	return err
}

// dispel enqueues the doubted objects.
func (r *Reconciler) dispel(p Pass) {
	for _, object := range r.copy.doubts() {
		p.Enqueue(revokes, Key{sort: tuples, object: object})
	}
}

// Emptied reports whether IAM no longer needs its store. That is so if the Store names no store or no model, if the
// store ends and is empty, or if it is not ours.
func (r *Reconciler) Emptied() bool {
	_, known := r.State.where()
	return !known || r.emptied.Load()
}

// whole compares the whole store with the copy. The tail enqueues the differing objects. No pass waits for it.
func (r *Reconciler) whole(ctx context.Context) error {
	n, err := r.declared(ctx)
	if n == nil || err != nil {
		return err
	}
	return r.copy.review(ctx, n.of.storeID)
}

// everything enqueues all OpenFGA objects that hold or may want tuples, and all statuses.
func (r *Reconciler) everything(n *snapshot, p Pass) {
	objects := map[string]bool{}
	for _, object := range r.copy.known() {
		objects[object] = true
	}
	for _, kind := range r.State.kinds {
		r.ask(p, kind.keys(), objects)
	}
	for _, object := range r.State.owned() {
		objects[object] = true
	}
	r.enqueue(n, p, objects)
}

// ask adds the OpenFGA objects of declared objects to objects, and enqueues their statuses.
func (r *Reconciler) ask(p Pass, keys []event.Key, objects map[string]bool) {
	for _, k := range keys {
		for _, object := range r.State.holders(k) {
			objects[object] = true
		}
		r.revisit(p, k)
	}
}

// enqueue enqueues OpenFGA objects, those that lose tuples first.
func (r *Reconciler) enqueue(n *snapshot, p Pass, objects map[string]bool) {
	for object := range objects {
		p.Enqueue(r.urgency(n, object), Key{sort: tuples, object: object})
	}
}

// large bounds the number of tuples up to which an object is compared only to find its priority.
const large = 256

// urgency returns the priority of an OpenFGA object: first those that lose tuples, then large ones, which may.
func (r *Reconciler) urgency(n *snapshot, object string) int {
	switch size := r.copy.size(object); {
	case size == 0:
		return changes
	case size > large:
		return mayTake
	case r.copy.holds(n, object):
		return changes
	}
	has, _ := r.copy.has(n.of.storeID, object)
	if _, remove := r.difference(n, object, has); len(remove) > 0 {
		return revokes
	}
	return changes
}
