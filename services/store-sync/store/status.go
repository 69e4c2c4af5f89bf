package store

import (
	"context"
	"errors"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/store-sync/module"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// statuses writes what statuses lack, and reports.
type statuses struct {
	// cluster is the one whose objects are ours to write to.
	cluster  string
	writer   *controller.StatusWriter
	announce func(*eventv1.StoreChanged)
}

// writeStatuses ends a pass: the Store first, because tuples wait for its model, then all objects
// behind its modules. These are judged by what was decided from, not by what the view has got since.
func (w *statuses) writeStatuses(ctx context.Context, p consume.Reporter, in plan.Input, obs plan.Observed, members []module.Member) error {
	switch {
	case obs.Released || in.Store == nil && in.Gone != nil:
		p.Report(in.Change, eventv1.Outcome_OUTCOME_APPLIED, "")
	case in.Store != nil:
		if err := w.writeStore(ctx, p, in, obs); err != nil {
			return err
		}
	}
	for _, m := range in.Modules {
		if m.Value.DeletionTimestamp == nil && m.Key.Cluster == w.cluster {
			status := plan.ModuleStatus(m.Value, plan.Verdict(in, obs, m.Key))
			if _, err := w.write(ctx, p, kinds.AuthorizationModels(), m.Change, status); err != nil {
				return err
			}
		}
	}
	for _, m := range members {
		// One that has changed since has its own event coming, and that its pass.
		_, err := w.write(ctx, p, m.Kind, m.Change, m.Status(plan.Verdict(in, obs, m.Carrier)))
		if err != nil && !errors.Is(err, reconcile.ErrStale) {
			return err
		}
	}
	return nil
}

// recordLive writes down what is live from now on, of all whom the next model takes something from. Nothing is reported:
// the pass goes on.
func (w *statuses) recordLive(ctx context.Context, p consume.Reporter, in plan.Input) error {
	store, modules := plan.LiveRecords(in)
	if store != nil {
		if _, err := w.writer.Apply(ctx, p, kinds.Stores(), in.Change, store); err != nil {
			return err
		}
	}
	for _, m := range in.Modules {
		status, takes := modules[m.Key.Name]
		if !takes || m.Key.Cluster != w.cluster {
			continue
		}
		if _, err := w.writer.Apply(ctx, p, kinds.AuthorizationModels(), m.Change, status); err != nil && !errors.Is(err, kube.ErrNotFound) {
			return err
		}
	}
	return nil
}

// writeStore announces a model that the Store's status does not name yet, and names it.
func (w *statuses) writeStore(ctx context.Context, p consume.Reporter, in plan.Input, obs plan.Observed) error {
	fields := plan.StoreStatus(in, obs)
	if id := fields.AuthorizationModelID; id != "" && id != in.Store.Status.AuthorizationModelID {
		w.announce(&eventv1.StoreChanged{StoreId: fields.StoreID, AuthorizationModelId: id})
	}
	status := plan.Status(in, obs, fields)
	now, err := w.write(ctx, p, kinds.Stores(), in.Change, status)
	if err == nil && !status.Same && now.ResourceVersion == in.Change.ResourceVersion {
		err = kube.ErrNotFound
	}
	return err
}

func (w *statuses) write(ctx context.Context, p consume.Reporter, kind kinds.Kind, o event.Change, s moduleplan.Status) (event.Change, error) {
	return w.writer.Write(ctx, p, controller.Status{
		Kind: kind, Object: o, Fields: s.Fields, Same: s.Same, Outcome: s.Outcome, Message: s.Message, Notes: s.Notes,
	})
}
