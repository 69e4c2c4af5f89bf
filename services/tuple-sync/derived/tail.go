package derived

import (
	"context"

	"github.com/entail-dev/entail/services/internal/event"
)

// syncStore examines the store as a whole, and runs again after interval.
func (r *Reconciler) syncStore(ctx context.Context, p Pass) error {
	err := r.locateStore(ctx, p)
	if r.reportObstacle(ctx, p); err != nil {
		return err
	}
	n, err := r.declaredSnapshot(ctx)
	if err != nil {
		return err
	}
	if n == nil { // A change of the Store wakes the tail; an unadopted store is polled.
		if store, known := r.State.iamStore(); known && !r.State.isEnding(store) {
			p.Reporter.RequeueAfter(interval)
		}
		return nil
	}
	if err := r.copy.followStore(ctx, n.of.storeID); err != nil {
		return err
	}
	if p.Resync {
		p.Enqueue(statuses, Key{sort: whole})
		for _, kind := range r.State.allTables() {
			kind.resetDrained()
		}
	}
	told := r.State.observed.changesSinceLast()
	if missed, loaded := r.missed.Swap(false), r.copy.loadCount(); missed || r.swept != n.of || r.loaded != loaded {
		r.enqueueAll(n, p)
		r.asked.Store(&n.moment)
		r.swept, r.loaded = n.of, loaded
	} else {
		r.enqueueObserved(n, p, told)
	}
	if r.copy.isRereadDue() {
		p.Enqueue(mayTake, Key{sort: back})
	}
	r.requeueSuspects(p)
	r.emptied.Store(n.of.ends && r.copy.isEmpty())
	p.Reporter.RequeueAfter(interval)
	return nil
}

// rereadChanges runs [replica.rereadChanges] for the present store, beside the passes that decide.
func (r *Reconciler) rereadChanges(ctx context.Context, p Pass) error {
	n, err := r.declaredSnapshot(ctx)
	if n == nil || err != nil || !r.copy.isOf(n.of.storeID) {
		return err
	}
	err = r.copy.rereadChanges(ctx, n.of.storeID)
	r.requeueSuspects(p)
	return err
}

// requeueSuspects enqueues the doubted objects.
func (r *Reconciler) requeueSuspects(p Pass) {
	for _, object := range r.copy.suspects() {
		p.Enqueue(revokes, Key{sort: tuples, object: object})
	}
}

// IsEmptied reports whether IAM no longer needs its store. That is so if the Store names no store or no model, if the
// store ends and is empty, or if it is not ours.
func (r *Reconciler) IsEmptied() bool {
	_, known := r.State.iamStore()
	return !known || r.emptied.Load()
}

// compareStore compares the whole store with the copy. The tail enqueues the differing objects. No pass waits for it.
func (r *Reconciler) compareStore(ctx context.Context) error {
	n, err := r.declaredSnapshot(ctx)
	if n == nil || err != nil {
		return err
	}
	return r.copy.reviewStore(ctx, n.of.storeID)
}

// enqueueAll enqueues all OpenFGA objects that hold or may want tuples, and all statuses.
func (r *Reconciler) enqueueAll(n *snapshot, p Pass) {
	objects := map[string]bool{}
	for _, object := range r.copy.knownObjects() {
		objects[object] = true
	}
	for _, kind := range r.State.kinds {
		r.enqueueKeys(p, kind.liveKeys(), objects)
	}
	for _, object := range r.State.ownedTargets() {
		objects[object] = true
	}
	r.enqueueObjects(n, p, objects)
}

// enqueueKeys adds the OpenFGA objects of declared objects to objects, and enqueues their statuses.
func (r *Reconciler) enqueueKeys(p Pass, keys []event.Key, objects map[string]bool) {
	for _, k := range keys {
		for _, object := range r.State.affectedHolders(k, r.copy.mayHold) {
			objects[object] = true
		}
		r.requeueStatus(p, k)
	}
}

// enqueueObjects enqueues OpenFGA objects, those that lose tuples first.
func (r *Reconciler) enqueueObjects(n *snapshot, p Pass, objects map[string]bool) {
	for object := range objects {
		p.Enqueue(r.priorityOf(n, object), Key{sort: tuples, object: object})
	}
}

// large bounds the number of tuples up to which an object is compared only to find its priority.
const large = 256

// priorityOf returns the priority of an OpenFGA object: first those that lose tuples, then large ones, which may.
func (r *Reconciler) priorityOf(n *snapshot, object string) int {
	switch size := r.copy.tupleCount(object); {
	case size == 0:
		return changes
	case size > large:
		return mayTake
	case r.copy.hasExactly(n, object):
		return changes
	}
	has, _ := r.copy.copyOf(n.of.storeID, object)
	if _, remove := r.differenceOf(n, object, has); len(remove) > 0 {
		return revokes
	}
	return changes
}
