package mirror

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

// sync makes an OpenFGA object hold exactly its wanted tuples, and enqueues the keys that wait for it.
func (r *Reconciler) sync(ctx context.Context, p Pass) error {
	defer r.copy.engage(p.Key.object)()
	var doors []iam.Tuple
	more := false
	err := reconcile.Retry(p.Key, func() error {
		n, err := r.snapshot(ctx)
		if n == nil || err != nil {
			return err
		}
		p.Reporter.Watch(r.State.members(p.Key.object)...)
		if r.copy.holds(n, p.Key.object) {
			return nil
		}
		has, strange, err := r.copy.held(ctx, n.of.storeID, p.Key.object)
		if err != nil {
			return err
		}
		add, remove := r.difference(n, p.Key.object, has)
		if err := r.remove(ctx, p, n, remove); err != nil {
			return err
		}
		doors = append(doors, shared(strange, remove)...)
		more, err = r.add(ctx, p, n, add)
		return err
	})
	r.announce(ctx, p.Key.object, doors)
	switch {
	case more:
		p.Enqueue(changes, p.Key)
	case err == nil:
		p.Enqueue(statuses, r.copy.release(p.Key.object)...)
	}
	return err
}

// lost reports whether OpenFGA lacks the store or its model.
func lost(err error) bool {
	return errors.Is(err, fga.ErrModelNotFound) || errors.Is(err, fga.ErrStoreNotFound)
}

// remove removes tuples by one write.
func (r *Reconciler) remove(ctx context.Context, p Pass, n *snapshot, remove []iam.Tuple) error {
	if len(remove) == 0 {
		return nil
	}
	_, err := r.Writer.Write(ctx, tuple.Write{StoreID: n.of.storeID, ModelID: n.of.modelID, Remove: convertAll(remove), Sure: true, Turn: p.Reporter.Turn()})
	switch {
	case lost(err):
		r.copy.forget()
		return fault.Unavailable(err) // store-sync creates another.
	case err != nil:
		r.copy.doubt(p.Key.object)
		return err
	}
	p.Reporter.Count(n.store)
	r.copy.wrote(n.of.storeID, p.Key.object, nil, remove)
	return nil
}

const (
	// chunk bounds the tuples of one write. Earlier chunks stay if a later one fails.
	chunk = 100
	// chunks bounds the writes of one pass, so that removals in the meantime need not wait longer.
	chunks = 10
)

// add adds tuples. It returns more if the bound of one pass left some.
func (r *Reconciler) add(ctx context.Context, p Pass, n *snapshot, add []iam.Tuple) (more bool, err error) {
	now := add[:min(len(add), chunks*chunk)]
	for some := range slices.Chunk(now, chunk) {
		if err := r.addChunk(ctx, p, n, some); err != nil {
			return false, err
		}
	}
	return len(now) < len(add), nil
}

// addChunk adds tuples by one write. If OpenFGA refuses some, it remembers them with the model, and the key is planned
// again.
func (r *Reconciler) addChunk(ctx context.Context, p Pass, n *snapshot, add []iam.Tuple) error {
	refused, err := r.Writer.Write(ctx, tuple.Write{StoreID: n.of.storeID, ModelID: n.of.modelID, Add: convertAll(add), Turn: p.Reporter.Turn()})
	switch {
	case lost(err):
		r.copy.forget()
		return fault.Unavailable(err) // store-sync creates another.
	case err != nil:
		r.copy.doubt(p.Key.object)
		return err
	case len(refused) > 0:
		r.copy.doubt(p.Key.object)
		for t, why := range refused {
			r.copy.refuse(iam.Tuple{User: t.User, Relation: t.Relation, Object: t.Object}, n.of.modelID)
			r.Log.WarnContext(ctx, "tuple of IAM refused by OpenFGA", slog.String("tuple", t.String()), slog.Any("error", why))
		}
		return reconcile.ErrStale
	}
	p.Reporter.Count(n.store)
	r.copy.wrote(n.of.storeID, p.Key.object, add, nil)
	return nil
}

// announce counts removed tuples that others wrote. It writes one log line and one event for each object, for any
// number of tuples.
func (r *Reconciler) announce(ctx context.Context, object string, doors []iam.Tuple) {
	if len(doors) == 0 {
		return
	}
	r.undeclared.Add(float64(len(doors)))
	told := fmt.Sprintf("somebody wrote %d tuples of %s, which nobody declares, such as %s", len(doors), object, convert(doors[0]))
	r.Log.WarnContext(ctx, "tuples of IAM removed that nobody declares", slog.String("object", object), slog.Int("tuples", len(doors)),
		slog.String("such_as", convert(doors[0]).String()))
	if store, known := r.State.where(); known {
		r.Status.Note(ctx, store.Change, condition.Note{Warning: true, Reason: "UndeclaredTupleRemoved", Message: told})
	}
}

// shared returns the tuples that are in both lists.
func shared(a, b []iam.Tuple) []iam.Tuple {
	in := map[iam.Tuple]bool{}
	for _, t := range b {
		in[t] = true
	}
	return slices.DeleteFunc(a, func(t iam.Tuple) bool { return !in[t] })
}
