package derived

import (
	"context"

	"github.com/entail-dev/entail/services/internal/event"
)

// checkIAMStoreAndRequeue examines the store as a whole, and runs again after interval.
func (r *Reconciler) checkIAMStoreAndRequeue(ctx context.Context, p ReconcileRequest) error {
	err := r.checkStoreAndOwner(ctx, p)
	if r.reportObstacle(ctx, p); err != nil {
		return err
	}
	n, err := r.declaredSnapshot(ctx)
	if err != nil {
		return err
	}
	if n == nil { // A change of the Store wakes the tail; an unadopted store is polled.
		if store, known := r.State.iamStore(); known && !r.State.isStoreDeletable(store) {
			p.Reporter.RequeueAfter(interval)
		}
		return nil
	}
	if err := r.copy.catchUp(ctx, n.of.storeID); err != nil {
		return err
	}
	if p.Resync {
		p.Enqueue(statuses, Key{sort: whole})
		for _, kind := range r.State.allTables() {
			kind.resetDrained()
		}
	}
	told := r.State.observed.takeChanges()
	if missed, loaded := r.missed.Swap(false), r.copy.loadCount(); missed || r.swept != n.of || r.loaded != loaded {
		r.enqueueAll(n, p)
		r.asked.Store(&n.moment)
		r.swept, r.loaded = n.of, loaded
	} else {
		r.enqueueDependentsOfChangedKinds(n, p, told)
	}
	if r.copy.isRereadDue() {
		p.Enqueue(mayTake, Key{sort: back})
	}
	r.requeueSuspects(p)
	r.emptied.Store(n.of.ends && r.copy.isEmpty())
	p.Reporter.RequeueAfter(interval)
	return nil
}

// rereadRecentChanges runs [tupleReplica.rereadRecentChanges] for the present store, beside the passes that decide.
func (r *Reconciler) rereadRecentChanges(ctx context.Context, p ReconcileRequest) error {
	n, err := r.declaredSnapshot(ctx)
	if n == nil || err != nil || !r.copy.isReplicaOf(n.of.storeID) {
		return err
	}
	err = r.copy.rereadRecentChanges(ctx, n.of.storeID)
	r.requeueSuspects(p)
	return err
}

// requeueSuspects enqueues the doubted objects.
func (r *Reconciler) requeueSuspects(p ReconcileRequest) {
	for _, object := range r.copy.suspectObjects() {
		p.Enqueue(revokes, Key{sort: tuples, object: object})
	}
}

// IsIAMStoreEmptied reports whether IAM no longer needs its store. That is so if the Store names no store or no model, if the
// store ends and is empty, or if it is not ours.
func (r *Reconciler) IsIAMStoreEmptied() bool {
	_, known := r.State.iamStore()
	return !known || r.emptied.Load()
}

// compareStoreWithReplica compares the whole store with the copy. The tail enqueues the differing objects. No pass waits for it.
func (r *Reconciler) compareStoreWithReplica(ctx context.Context) error {
	n, err := r.declaredSnapshot(ctx)
	if n == nil || err != nil {
		return err
	}
	return r.copy.markDifferingObjects(ctx, n.of.storeID)
}

// enqueueAll enqueues all OpenFGA objects that hold or may want tuples, and all statuses.
func (r *Reconciler) enqueueAll(n *iamSnapshot, p ReconcileRequest) {
	objects := map[string]bool{}
	for _, object := range r.copy.objectsWithTuples() {
		objects[object] = true
	}
	for _, kind := range r.State.kinds {
		r.enqueueDeclaredObjects(p, kind.liveKeys(), objects)
	}
	for _, object := range r.State.ownedTargets() {
		objects[object] = true
	}
	r.enqueueObjects(n, p, objects)
}

// enqueueDeclaredObjects adds the OpenFGA objects of declared objects to objects, and enqueues their statuses.
func (r *Reconciler) enqueueDeclaredObjects(p ReconcileRequest, keys []event.Key, objects map[string]bool) {
	for _, k := range keys {
		for _, object := range r.State.affectedTupleHolders(k, r.copy.canHoldTuples) {
			objects[object] = true
		}
		r.requeueStatus(p, k)
	}
}

// enqueueObjects enqueues OpenFGA objects, those that lose tuples first.
func (r *Reconciler) enqueueObjects(n *iamSnapshot, p ReconcileRequest, objects map[string]bool) {
	for object := range objects {
		p.Enqueue(r.priorityOfObject(n, object), Key{sort: tuples, object: object})
	}
}

// large bounds the number of tuples up to which an object is compared only to find its priority.
const large = 256

// priorityOfObject returns the priority of an OpenFGA object: first those that lose tuples, then large ones, which may.
func (r *Reconciler) priorityOfObject(n *iamSnapshot, object string) int {
	switch size := r.copy.tupleCount(object); {
	case size == 0:
		return changes
	case size > large:
		return mayTake
	case r.copy.hasExactlyDesired(n, object):
		return changes
	}
	has, _ := r.copy.replicatedTuples(n.of.storeID, object)
	if _, remove := r.tupleDifference(n, object, has); len(remove) > 0 {
		return revokes
	}
	return changes
}
