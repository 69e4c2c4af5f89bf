package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// sync makes an object of OpenFGA hold what it is to hold, and asks for who waits for that.
func (r *Reconciler) sync(ctx context.Context, p Pass) error {
	err := reconcile.Retry(p.Key, func() error {
		n, err := r.snapshot(ctx)
		if n == nil || err != nil {
			return err
		}
		has, strange, err := r.copy.held(ctx, n.of.storeID, p.Key.object)
		if err != nil {
			return err
		}
		add, remove := r.difference(n, p.Key.object, has)
		if err := r.remove(ctx, p, n, remove); err != nil {
			return err
		}
		r.announce(ctx, n, strange, remove)
		return r.add(ctx, p, n, add)
	})
	if err == nil {
		p.Enqueue(statuses, r.copy.release(p.Key.object)...)
	}
	return err
}

// remove takes away, on the word of the bus: whoever forges that gives nobody anything.
func (r *Reconciler) remove(ctx context.Context, p Pass, n *snapshot, remove []iam.Tuple) error {
	if len(remove) == 0 {
		return nil
	}
	if _, err := r.Writer.Write(ctx, tuple.Write{StoreID: n.of.storeID, Remove: convertAll(remove)}); err != nil {
		r.copy.doubt(p.Key.object)
		return err
	}
	p.Reporter.Count(n.store)
	r.copy.wrote(n.of.storeID, p.Key.object, nil, remove)
	return nil
}

// add gives what the API server itself has said that is declared.
func (r *Reconciler) add(ctx context.Context, p Pass, n *snapshot, add []iam.Tuple) error {
	if len(add) == 0 {
		return nil
	}
	statements := []confirm.Statement{n.says}
	for _, t := range add {
		if err := r.bind(ctx, p, n, t); err != nil {
			return err
		}
		statements = append(statements, r.State.sources(n.objects, t)...)
	}
	if err := r.Confirmer.Confirm(ctx, statements...); err != nil {
		return err
	}
	refused, err := r.Writer.Write(ctx, tuple.Write{StoreID: n.of.storeID, ModelID: n.of.modelID, Add: convertAll(add)})
	switch {
	case errors.Is(err, fga.ErrModelNotFound), errors.Is(err, fga.ErrStoreNotFound):
		r.copy.forget()
		return fault.Unavailable(err) // store-sync makes another.
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

// bind records in a membership for whom it is, before that user gets anything by it: another of the name shall not inherit it.
func (r *Reconciler) bind(ctx context.Context, p Pass, n *snapshot, t iam.Tuple) error {
	g := n.objects.GroupOf(t.Object)
	if g == nil {
		return nil
	}
	for _, m := range r.State.memberships.by(byGroup, path(g.Namespace, g.Name)) {
		if is, _ := n.objects.Member(m.Value); is != t.User || m.Value.DeletionTimestamp != nil || isFor(m.Value) {
			continue
		}
		if err := r.record(ctx, p, n, m); err != nil {
			return err
		}
		return fmt.Errorf("%s: %w", m.Key, reconcile.ErrStale) // The record is what is decided from.
	}
	return nil
}

// isFor says whether it is recorded for whom a membership is.
func isFor(m *iamv1alpha1.GroupMembership) bool {
	return m.Status.User != nil && m.Status.User.Name == m.Spec.UserRef.Name
}

func (r *Reconciler) record(ctx context.Context, p Pass, n *snapshot, m view.Object[iamv1alpha1.GroupMembership]) error {
	user := n.objects.User(m.Value.Spec.UserRef.Name)
	if user == nil {
		return reconcile.ErrStale
	}
	if err := r.Confirmer.Confirm(ctx, append(r.State.users.stated("", user.Name), r.State.memberships.statement(m))...); err != nil {
		return err
	}
	fields := membershipStatus{User: &iamv1alpha1.Member{Name: user.Name, UID: string(user.UID)}, Conditions: m.Value.Status.Conditions}
	now, err := r.Status.Apply(ctx, p.Reporter, r.State.memberships.cfg.kind, m.Change, fields)
	if err != nil {
		return err
	}
	return r.Confirmer.Learn(ctx, r.State.memberships.statement(m), now)
}

// announce says that somebody wrote tuples that nobody declares.
func (r *Reconciler) announce(ctx context.Context, n *snapshot, strange, removed []iam.Tuple) {
	for _, t := range strange {
		for _, gone := range removed {
			if t != gone {
				continue
			}
			r.undeclared.Inc()
			r.Log.WarnContext(ctx, "tuple of IAM removed that nobody declares", slog.String("tuple", convert(t).String()))
			r.Status.Note(ctx, n.store, condition.Note{
				Warning: true, Reason: "UndeclaredTupleRemoved", Message: fmt.Sprintf("somebody wrote %s, which nobody declares", convert(t)),
			})
		}
	}
}
