package derived

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// syncOpenFGAObject makes an OpenFGA object hold exactly its wanted tuples, and enqueues the keys that wait for it.
func (r *Reconciler) syncOpenFGAObject(ctx context.Context, p ReconcileRequest) error {
	defer r.copy.beginWrite(p.Key.object)()
	var doors []iam.Tuple
	more := false
	err := reconcile.RetryWhileStale(p.Key, func() error {
		n, err := r.snapshotWithFreshReplica(ctx)
		if n == nil || err != nil {
			return err
		}
		p.Reporter.RequeueOnChange(r.State.membershipsOf(p.Key.object)...)
		if r.copy.hasExactlyDesired(n, p.Key.object) {
			return nil
		}
		has, strange, err := r.copy.readObjectTuples(ctx, n.of.storeID, p.Key.object)
		if err != nil {
			return err
		}
		add, remove := r.tupleDifference(n, p.Key.object, has)
		if err := r.removeTuples(ctx, p, n, remove); err != nil {
			return err
		}
		doors = append(doors, intersectTuples(strange, remove)...)
		more, err = r.addTuples(ctx, p, n, add)
		return err
	})
	r.reportUndeclaredRemoved(ctx, p.Key.object, doors)
	switch {
	case more:
		p.Enqueue(changes, p.Key)
	case err == nil:
		p.Enqueue(statuses, r.copy.takeWaiters(p.Key.object)...)
	}
	return err
}

// isStoreLost reports whether OpenFGA lacks the store or its model.
func isStoreLost(err error) bool {
	return errors.Is(err, fga.ErrModelNotFound) || errors.Is(err, fga.ErrStoreNotFound)
}

// removeTuples removes tuples by one write.
func (r *Reconciler) removeTuples(ctx context.Context, p ReconcileRequest, n *iamSnapshot, remove []iam.Tuple) error {
	if len(remove) == 0 {
		return nil
	}
	_, err := r.Writer.Write(ctx, tuple.Write{
		StoreID: n.of.storeID, ModelID: n.of.modelID, Remove: fromIAMTuples(remove), Sure: true,
		Term: p.Reporter.Term(),
	})
	switch {
	case isStoreLost(err):
		r.copy.dropReplica()
		return fault.Unavailable(err) // store-sync creates another.
	case err != nil:
		r.copy.markSuspect(p.Key.object)
		return err
	}
	p.Reporter.CountWrite(n.store)
	r.copy.recordWrite(n.of.storeID, p.Key.object, nil, remove)
	return nil
}

const (
	// chunk bounds the tuples of one write. Earlier chunks stay if a later one fails.
	chunk = 100
	// chunks bounds the writes of one pass, so that removals in the meantime need not wait longer.
	chunks = 10
)

// addTuples adds tuples. It returns more if the bound of one pass left some.
func (r *Reconciler) addTuples(ctx context.Context, p ReconcileRequest, n *iamSnapshot, add []iam.Tuple) (more bool, err error) {
	now := add[:min(len(add), chunks*chunk)]
	for some := range slices.Chunk(now, chunk) {
		if err := r.addTupleChunk(ctx, p, n, some); err != nil {
			return false, err
		}
	}
	return len(now) < len(add), nil
}

// addTupleChunk adds tuples by one write. If OpenFGA refuses some, it remembers them with the model, and the key is planned
// again.
func (r *Reconciler) addTupleChunk(ctx context.Context, p ReconcileRequest, n *iamSnapshot, add []iam.Tuple) error {
	refused, err := r.Writer.Write(ctx, tuple.Write{StoreID: n.of.storeID, ModelID: n.of.modelID, Add: fromIAMTuples(add), Term: p.Reporter.Term()})
	switch {
	case isStoreLost(err):
		r.copy.dropReplica()
		return fault.Unavailable(err) // store-sync creates another.
	case err != nil:
		r.copy.markSuspect(p.Key.object)
		return err
	case len(refused) > 0:
		r.copy.markSuspect(p.Key.object)
		for t, why := range refused {
			r.copy.recordRefusal(iam.Tuple{User: t.User, Relation: t.Relation, Object: t.Object}, n.of.modelID)
			r.Log.WarnContext(ctx, "tuple of IAM refused by OpenFGA", slog.String("tuple", t.String()), slog.Any("error", why))
		}
		return reconcile.ErrStale
	}
	p.Reporter.CountWrite(n.store)
	r.copy.recordWrite(n.of.storeID, p.Key.object, add, nil)
	return nil
}

// reportUndeclaredRemoved counts removed tuples that others wrote. It writes one log line and one event for each object, for any
// number of tuples.
func (r *Reconciler) reportUndeclaredRemoved(ctx context.Context, object string, doors []iam.Tuple) {
	if len(doors) == 0 {
		return
	}
	r.undeclared.Add(float64(len(doors)))
	told := fmt.Sprintf("other software wrote %d tuples of %s that no object declares, for example %s", len(doors), object, fromIAMTuple(doors[0]))
	r.Log.WarnContext(ctx, "undeclared tuples of IAM removed", slog.String("object", object), slog.Int("tuples", len(doors)),
		slog.String("such_as", fromIAMTuple(doors[0]).String()))
	if store, known := r.State.iamStore(); known {
		r.Status.RecordEvents(ctx, store.Change, condition.EventContent{Warning: true, Reason: "UndeclaredTupleRemoved", Message: told})
	}
}

// intersectTuples returns the tuples that are in both lists.
func intersectTuples(a, b []iam.Tuple) []iam.Tuple {
	in := map[iam.Tuple]bool{}
	for _, t := range b {
		in[t] = true
	}
	return slices.DeleteFunc(a, func(t iam.Tuple) bool { return !in[t] })
}
