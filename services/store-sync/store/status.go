package store

import (
	"context"
	"errors"
	"log/slog"

	"k8s.io/apimachinery/pkg/api/equality"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/store-sync/module"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// statusWriter writes what statuses lack, and reports.
type statusWriter struct {
	// cluster is the one whose objects are ours to write to.
	cluster  string
	view     *view.View
	kube     *kube.Client
	announce func(context.Context, *eventv1.StoreChanged) error
	log      *slog.Logger
}

// writeStatuses ends a pass: the Store first, because tuples wait for its model, then all objects
// behind its modules. These are judged by what was decided from, not by what the view has got since.
func (w *statusWriter) writeStatuses(ctx context.Context, p consume.Reporter, in plan.Input, obs plan.Observed, members []module.Member) error {
	switch {
	case obs.Released || in.Store == nil && in.Gone != nil:
		p.Report(in.Change, eventv1.Outcome_OUTCOME_APPLIED, "")
	case in.Store != nil:
		if err := w.writeStore(ctx, p, in, obs, true); err != nil {
			return err
		}
		outcome, message := plan.StoreOutcome(plan.StoreStatus(in, obs).Conditions)
		p.Report(in.Change, outcome, message)
	}
	for _, m := range append(w.members(in), members...) {
		if err := w.write(ctx, p, m, m.Status(plan.Verdict(in, obs, m.Carrier))); err != nil {
			return err
		}
	}
	return nil
}

// members are the AuthorizationModels here.
func (w *statusWriter) members(in plan.Input) []module.Member {
	var members []module.Member
	for _, m := range in.Modules {
		if m.Value.DeletionTimestamp == nil && m.Key.Cluster == w.cluster {
			members = append(members, module.Member{
				Change: m.Change, Kind: kinds.AuthorizationModels(), Carrier: m.Key,
				Status: func(v moduleplan.Verdict) moduleplan.Status { return plan.ModuleStatus(m.Value, v) },
			})
		}
	}
	return members
}

// writeStore announces a model that the Store's status does not name yet, and then names it: a
// crash in between announces it again. With cas it does so only on the very state that was planned from.
func (w *statusWriter) writeStore(ctx context.Context, p consume.Reporter, in plan.Input, obs plan.Observed, cas bool) error {
	was, status := in.Store.Status, plan.StoreStatus(in, obs)
	if id := status.AuthorizationModelID; id != "" && id != was.AuthorizationModelID {
		if err := w.announce(ctx, &eventv1.StoreChanged{StoreId: status.StoreID, AuthorizationModelId: id}); err != nil {
			return err
		}
	}
	if equality.Semantic.DeepEqual(plan.OwnStoreStatus(was), status) {
		return nil
	}
	now, err := w.apply(ctx, kinds.Stores(), in.Change, status, cas)
	if err != nil {
		return err
	}
	w.record(ctx, in.Change, plan.StoreNotes(was.Conditions, status.Conditions, obs))
	return p.Wrote(ctx, in.Change, now)
}

// write writes what the status of an object lacks, unless it vanished meanwhile, and reports.
func (w *statusWriter) write(ctx context.Context, p consume.Reporter, m module.Member, s moduleplan.Status) error {
	if !s.Same {
		now, err := w.apply(ctx, m.Kind, m.Change, s.Fields, m.Kind == kinds.AuthorizationModels())
		if errors.Is(err, kube.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		w.record(ctx, m.Change, s.Notes)
		if err := p.Wrote(ctx, m.Change, now); err != nil {
			return err
		}
	}
	p.Report(m.Change, s.Outcome, s.Message)
	return nil
}

// apply writes our part of a status. When the object is no longer as it was, it is ErrStale, and
// the newest state is in the view.
func (w *statusWriter) apply(ctx context.Context, kind kinds.Kind, about event.Change, fields any, cas bool) (event.Change, error) {
	now, err := w.kube.ApplyStatus(ctx, kind, about, fields, cas)
	if !cas || !errors.Is(err, kube.ErrConflict) {
		return now, err
	}
	if now, err = w.kube.Get(ctx, kind, about.Key.Namespace, about.Key.Name); err != nil {
		return now, err
	}
	now.Traceparent = about.Traceparent
	return now, errors.Join(reconcile.ErrStale, w.view.Apply(ctx, now))
}

// record makes Events; they are a courtesy.
func (w *statusWriter) record(ctx context.Context, about event.Change, notes []condition.Note) {
	for _, n := range notes {
		if err := w.kube.Event(ctx, about, n); err != nil {
			w.log.DebugContext(ctx, "event not recorded", slog.String("object", about.Key.String()), slog.Any("error", err))
		}
	}
}
