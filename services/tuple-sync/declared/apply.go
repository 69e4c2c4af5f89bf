package declared

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// APIServer holds the calls to the API server other than status writes.
type APIServer interface {
	Get(ctx context.Context, kind kinds.Kind, namespace, name string) (event.Change, error)
	AddFinalizer(ctx context.Context, kind kinds.Kind, obj event.Change, finalizer string) (event.Change, error)
	RemoveFinalizer(ctx context.Context, kind kinds.Kind, obj event.Change, finalizer string) (event.Change, error)
}

// StoreReader reads the content of an OpenFGA store.
type StoreReader interface {
	GetStore(ctx context.Context, storeID string) (fga.Store, bool, error)
	ReadTuples(ctx context.Context, storeID string) iter.Seq2[*openfgav1.Tuple, error]
	ReadTuple(ctx context.Context, storeID string, key *openfgav1.TupleKey) (*openfgav1.Tuple, bool, error)
	ReadChanges(ctx context.Context, storeID, token string, since time.Time) ([]*openfgav1.TupleChange, string, error)
}

// TupleWriter changes OpenFGA stores. It returns the additions that the server refuses; then the caller must plan again.
type TupleWriter interface {
	Write(ctx context.Context, w tuple.Write) (refused map[tuple.Tuple]error, err error)
}

// ModelCache caches authorization models. Get returns nil if the store lacks the model.
type ModelCache interface {
	Get(ctx context.Context, storeID, modelID string) (*plan.Model, error)
	Put(model *plan.Model)
	Drop(model *plan.Model)
}

// planApplier executes plans. Only it writes to the API server and OpenFGA. After an error at any point the next plan can
// continue; [reconcile.ErrStale] requests that plan at once.
type planApplier struct {
	state   *State
	records *verifiedRecords
	view    *informer.Informer
	cluster APIServer
	status  *setup.StatusWriter
	openFGA StoreReader
	writer  TupleWriter
	models  ModelCache
	log     *slog.Logger
	// retention is the time for which removed tuples are recorded; zero records none.
	retention time.Duration
	restored  func(tuples int)
}

func (a *planApplier) applyPlan(ctx context.Context, p *passState, s *planSnapshot, decided plan.Plan) error {
	for _, o := range s.objects {
		if err := a.reportUnreadableRecord(ctx, p, o); err != nil {
			return err
		}
	}
	if err := a.forEachAction(ctx, p, s, decided, a.addFinalizer); err != nil {
		return err
	}
	if slices.ContainsFunc(decided.Actions, func(action plan.OwnerAction) bool { return action.AddFinalizer }) {
		return reconcile.ErrStale // The objects may have changed meanwhile.
	}
	if len(decided.Remove) > 0 {
		if err := a.forEachAction(ctx, p, s, decided, a.verifyDeleted); err != nil {
			return err
		}
		if err := a.recordRemovals(ctx, s, &decided); err != nil {
			return err
		}
	}
	if err := a.forEachAction(ctx, p, s, decided, a.recordIntent); err != nil {
		return err
	}
	if err := a.writeTuples(ctx, s.input, decided); err != nil {
		return err
	}
	a.reportRestoredTuples(ctx, s, decided)
	for _, do := range []actionStep{a.recordCommit, a.removeFinalizer} {
		if err := a.forEachAction(ctx, p, s, decided, do); err != nil {
			return err
		}
	}
	return nil
}

// actionStep executes one part of an action.
type actionStep func(ctx context.Context, p *passState, o *ownerObject, action plan.OwnerAction) error

// forEachAction executes a step for all actions. An object that cannot be changed becomes unwritable, and the others are planned
// again.
func (a *planApplier) forEachAction(ctx context.Context, p *passState, s *planSnapshot, decided plan.Plan, do actionStep) error {
	for _, action := range decided.Actions {
		o := s.objects[action.Evaluation.Owner.UID]
		err := do(ctx, p, o, action)
		switch {
		case err == nil:
		case errors.Is(err, kube.ErrForbidden):
			a.markUnwritable(ctx, p, o, err)
			return reconcile.ErrStale
		case errors.Is(err, reconcile.ErrStale), fault.IsUnavailable(err):
			return err
		default:
			a.log.WarnContext(ctx, "object cannot be changed", slog.String("object", o.Key.String()), slog.Any("error", err))
			p.unwritable[o.UID] = err
			return reconcile.ErrStale
		}
	}
	return nil
}

// markUnwritable marks an object as unwritable, and writes the reason to its status if that is allowed.
func (a *planApplier) markUnwritable(ctx context.Context, p *passState, o *ownerObject, why error) {
	if p.forbidden == nil {
		p.forbidden = why
	}
	p.unwritable[o.UID] = why
	u := &plan.StatusUpdate{Record: o.Record, Condition: plan.UpdateForbiddenCondition(&o.Owner, why), StoreID: o.StatusStoreID}
	if u.Ready = o.ReadyCondition(u.Condition); u.Condition == o.Condition && u.Ready == o.Ready {
		return
	}
	if err := a.writeStatus(ctx, p, o, u); err != nil {
		a.log.DebugContext(ctx, "refused change not reported in the status", slog.String("object", o.Key.String()), slog.Any("error", err))
	}
}

// reportUnreadableRecord writes to an object's status that its record cannot be read. It keeps the record.
func (a *planApplier) reportUnreadableRecord(ctx context.Context, p *passState, o *ownerObject) error {
	if o.unreadable == nil || !errors.Is(p.unwritable[o.UID], o.unreadable) {
		return nil
	}
	u := &plan.StatusUpdate{Record: o.Record, Condition: plan.UnreadableCondition(&o.Owner, o.unreadable), StoreID: o.StatusStoreID}
	if u.Ready = o.ReadyCondition(u.Condition); u.Condition == o.Condition && u.Ready == o.Ready {
		return nil
	}
	fields, err := o.statusFields(a.state.packs, u)
	if err != nil {
		return err
	}
	switch _, err = a.status.ApplyOwnFields(ctx, p.reporter, o.kind, o.change, fields); {
	case errors.Is(err, kube.ErrForbidden): // Only this status waits; other objects continue.
		p.forbidden = err
	case errors.Is(err, reconcile.ErrStale), fault.IsUnavailable(err):
		return err
	case err != nil: // Other objects continue.
		a.log.WarnContext(ctx, "unreadable record not reported in the status", slog.String("object", o.Key.String()), slog.Any("error", err))
	default:
		a.status.RecordEvents(ctx, o.change, condition.EventContent{Warning: true, Reason: u.Condition.Reason, Message: u.Condition.Message})
	}
	return nil
}

// addFinalizer adds our finalizer. On a conflict it reads the object again and succeeds, because another plan follows
// anyway.
func (a *planApplier) addFinalizer(ctx context.Context, p *passState, o *ownerObject, action plan.OwnerAction) error {
	if !action.AddFinalizer {
		return nil
	}
	now, err := a.cluster.AddFinalizer(ctx, o.kind, o.change, corev1alpha1.TuplesFinalizer)
	if err == nil {
		return p.reporter.RecordWrite(ctx, o.change, now)
	}
	if errors.Is(err, kube.ErrConflict) || errors.Is(err, kube.ErrNotFound) {
		err = a.status.RefreshAsStale(ctx, o.kind, o.change)
	}
	if errors.Is(err, reconcile.ErrStale) {
		return nil
	}
	return err
}

// verifyDeleted verifies a deletion with the API server before tuples are removed. If the object still exists, the
// informer takes its present state and the plan is stale. A former state of a living object is verified once per pass.
func (a *planApplier) verifyDeleted(ctx context.Context, p *passState, o *ownerObject, _ plan.OwnerAction) error {
	if !o.Deleted || p.confirmed[o.UID] {
		return nil
	}
	held := o.change
	if namesake, ok := a.state.findObject(o.Key); ok {
		held = namesake.change
	}
	now, err := a.cluster.Get(ctx, o.kind, o.Key.Namespace, o.Key.Name)
	if errors.Is(err, kube.ErrNotFound) || err == nil && now.UID != o.change.UID {
		return nil
	}
	if err != nil {
		return err
	}
	if err := a.view.ApplyAuthoritative(ctx, held, now); err != nil {
		return fmt.Errorf("storing %s: %w", o.Key, err)
	}
	p.confirmed[o.UID] = o.former
	return reconcile.ErrStale
}

func (a *planApplier) recordIntent(ctx context.Context, p *passState, o *ownerObject, action plan.OwnerAction) error {
	return a.writeStatus(ctx, p, o, action.Intent)
}

// recordCommit records the tuples that are in the store now.
func (a *planApplier) recordCommit(ctx context.Context, p *passState, o *ownerObject, action plan.OwnerAction) error {
	return a.writeStatus(ctx, p, o, action.Commit)
}

// removeFinalizer removes our finalizer, so that the object can be deleted.
func (a *planApplier) removeFinalizer(ctx context.Context, p *passState, o *ownerObject, action plan.OwnerAction) error {
	if !action.RemoveFinalizer {
		return nil
	}
	now, err := a.cluster.RemoveFinalizer(ctx, o.kind, o.change, corev1alpha1.TuplesFinalizer)
	if err != nil {
		return err
	}
	if err := p.reporter.RecordWrite(ctx, o.change, now); err != nil {
		return err
	}
	o.change = now
	return nil
}

// writeTuples changes the store. If the server refuses tuples that the model allows, write remembers them with the model, and
// the plan is stale.
func (a *planApplier) writeTuples(ctx context.Context, in plan.Input, decided plan.Plan) error {
	if in.StoreID != "" && (len(decided.Write) > 0 || decided.CanMakeReady()) {
		if err := a.checkStoreExists(ctx, in.StoreID); err != nil {
			return err
		}
	}
	if len(decided.Write)+len(decided.Remove) == 0 {
		return nil
	}
	w := tuple.Write{StoreID: in.StoreID, Add: decided.Write, Remove: decided.Remove}
	if in.Model != nil {
		w.ModelID = in.Model.ID()
	}
	a.records.recordStartedWrite(in.StoreID, w.Add)
	refused, err := a.writer.Write(ctx, w)
	switch {
	case len(refused) > 0:
		a.models.Put(in.Model.WithRefusedTuples(refused))
		return reconcile.ErrStale
	case errors.Is(err, fga.ErrModelNotFound), errors.Is(err, fga.ErrStoreNotFound):
		// The server has lost the model. Nothing can be added until store-sync has written another.
		a.models.Drop(in.Model)
		return reconcile.ErrStale
	}
	return err
}

// checkStoreExists returns an error if the store was deleted. OpenFGA accepts tuples for a deleted store, where they have no
// effect. store-sync checks for it after every change, and creates another.
func (a *planApplier) checkStoreExists(ctx context.Context, storeID string) error {
	_, found, err := a.openFGA.GetStore(ctx, storeID)
	if err == nil && !found {
		return fault.Unavailable(fmt.Errorf("writing tuples to %s: %w", storeID, fga.ErrStoreNotFound))
	}
	return err
}

// readObservedTuples reads the store, and keeps the tuples that are strays, recorded removals, declared or recorded.
func (a *planApplier) readObservedTuples(ctx context.Context, in *plan.Input) error {
	in.Observed, in.Written = map[tuple.ID]tuple.Tuple{}, map[tuple.ID]time.Time{}
	ours := map[tuple.ID]struct{}{}
	for _, o := range in.Owners {
		for _, tuples := range [][]tuple.Tuple{o.Declared, o.Record.Tuples} {
			for _, t := range tuples {
				ours[t.ID] = struct{}{}
			}
		}
	}
	for _, t := range in.Strays {
		ours[t.ID] = struct{}{}
	}
	for _, r := range in.Removals.List {
		ours[r.ID] = struct{}{}
	}
	if len(ours) == 0 {
		return nil
	}
	for t, err := range a.openFGA.ReadTuples(ctx, in.StoreID) {
		if err != nil {
			return err
		}
		held := tuple.FromOpenFGA(t.GetKey())
		if _, ok := ours[held.ID]; ok {
			in.Observed[held.ID], in.Written[held.ID] = held, t.GetTimestamp().AsTime()
		}
	}
	return nil
}
