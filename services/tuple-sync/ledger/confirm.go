package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/tuple-sync/ledger/plan"
)

// confirm asks the API server whether the Store is really gone before a record is
// given up without a call to OpenFGA: the bus may not have told of the Store yet.
func (a *applier) confirm(ctx context.Context, _ *pass, o *object, action plan.Action) error {
	if action.Commit == nil || !action.Evaluation.AbandonsRecord() || o.Store.Cluster != o.Key.Cluster {
		return nil
	}
	store, err := a.cluster.Get(ctx, kinds.Stores(), "", o.Store.Name)
	if errors.Is(err, kube.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	held, _ := a.state.Stores.Last(o.Store)
	if err := a.view.Correct(ctx, held.Change, store); err != nil {
		return fmt.Errorf("taking in %s: %w", o.Store, err)
	}
	return reconcile.ErrStale
}

// confirmGone asks the API server whether an object is really gone before its tuples are removed.
func (a *applier) confirmGone(ctx context.Context, _ *pass, o *object, _ plan.Action) error {
	if !o.Deleted || o.former {
		return nil
	}
	now, err := a.cluster.Get(ctx, o.kind, o.Key.Namespace, o.Key.Name)
	if errors.Is(err, kube.ErrNotFound) || err == nil && now.UID != o.UID {
		return nil
	}
	if err != nil {
		return err
	}
	if err := a.view.Correct(ctx, o.change, now); err != nil {
		return fmt.Errorf("taking in %s: %w", o.Key, err)
	}
	return reconcile.ErrStale
}

// confirmTaken asks the API server whether an object is as the plan has it, where no answer to an intent says so. From then on
// its record is no longer true.
func (a *applier) confirmTaken(ctx context.Context, p *pass, o *object, action plan.Action) error {
	if !action.Takes {
		return nil
	}
	now, err := a.cluster.Get(ctx, o.kind, o.Key.Namespace, o.Key.Name)
	if err != nil && !errors.Is(err, kube.ErrNotFound) {
		return err
	}
	is, known := a.state.read(now)
	if err != nil || !known || !sameFor(*o, is) {
		return a.status.Refresh(ctx, o.kind, o.change)
	}
	a.records.distrust(p.key.StoreID, o)
	if err := a.view.Apply(ctx, a.view.Dated(now)); err != nil {
		return fmt.Errorf("taking in %s: %w", o.Key, err)
	}
	return a.follow(o)
}
