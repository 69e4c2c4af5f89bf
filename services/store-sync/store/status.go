package store

import (
	"context"
	"errors"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/store-sync/module"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// statusWriter writes missing parts of statuses, and reports the outcomes.
type statusWriter struct {
	// cluster is the cluster to which this service writes.
	cluster string
	state   *module.StoreListers
	writer  *setup.StatusWriter
	// verifier compares the API server's answers to status writes.
	verifier *verify.Verifier
}

// statusObject is an object whose status is written, with the state on which the decision was based.
type statusObject struct {
	kind kinds.Kind
	is   verify.ExpectedState
}

func statusObjectOfStore(in plan.Input) statusObject {
	return statusObject{kinds.Stores(), expectedStore(in)}
}

func statusObjectOfModule(m plan.ModelObject) statusObject {
	return statusObject{kinds.AuthorizationModels(), module.ExpectedModel(module.ModelObject(m))}
}

// withLatestState returns o with the latest state of the object, if the basis of the decision is unchanged. tuple-sync writes to
// the same object.
func (w *statusWriter) withLatestState(o statusObject) statusObject {
	if now, ok := w.state.ExpectedObject(o.is.Change().Key); ok && now.Equals(o.is) {
		o.is = now
	}
	return o
}

// writeStatuses ends a pass. It writes the AuthorizationModels before the Store, for two reasons. A reader of the model
// in the Store's status can then find the live texts of that model. Tuples that wait for a module are written only
// after the module's live text is recorded. An object whose status cannot be written does not stop the others, because
// tuple-sync cannot write to it either. The statuses follow from the basis of the pass, not from later changes in the
// informer.
func (w *statusWriter) writeStatuses(ctx context.Context, p controller.UntypedRequest, in plan.Input, obs plan.Observed, members []module.StatusTarget) error {
	refused := w.writeModelStatuses(ctx, p, in, obs)
	if isFatalForPass(refused) {
		return refused
	}
	switch {
	case obs.Released || in.Store == nil && in.Gone != nil:
		p.Report(in.Change, eventv1.Outcome_OUTCOME_APPLIED, "")
	case in.Store != nil:
		if err := w.writeStoreStatus(ctx, p, in, obs); err != nil {
			return err
		}
	}
	for _, m := range members {
		// A member that changed meanwhile gets a pass for its own event.
		_, err := w.writeStatus(ctx, p, statusObject{m.Kind, m.Expected}, m.Status(plan.ModuleVerdict(in, obs, m.Carrier)))
		if err != nil && !errors.Is(err, reconcile.ErrStale) {
			return err
		}
	}
	return refused
}

// writeModelStatuses writes the statuses of all AuthorizationModels that it can write, and returns the other errors.
func (w *statusWriter) writeModelStatuses(ctx context.Context, p controller.UntypedRequest, in plan.Input, obs plan.Observed) error {
	var refused []error
	for _, m := range in.Modules {
		if m.Value.DeletionTimestamp != nil || m.Key.Cluster != w.cluster {
			continue
		}
		_, err := w.writeStatus(ctx, p, statusObjectOfModule(m), plan.DesiredModuleStatus(m.Value, plan.ModuleVerdict(in, obs, m.Key)))
		if isFatalForPass(err) {
			return err
		}
		refused = append(refused, err)
	}
	return errors.Join(refused...)
}

// isFatalForPass reports whether an error ends the pass. The API server's refusal to write one object does not.
func isFatalForPass(err error) bool {
	return errors.Is(err, reconcile.ErrStale) || fault.IsUnavailable(err) && !errors.Is(err, kube.ErrForbidden)
}

// recordLiveTexts records the next live text in all objects from which the next model removes something. It also clears the
// digests that the model would make wrong. It reports nothing, because the pass continues.
func (w *statusWriter) recordLiveTexts(ctx context.Context, p controller.UntypedRequest, in plan.Input) error {
	store, modules := plan.StatusesToWriteBeforeModel(in)
	for _, m := range in.Modules {
		if fields, ok := modules[m.Key]; ok {
			if err := w.applyStatusFields(ctx, p, statusObjectOfModule(m), fields); err != nil {
				return err
			}
		}
	}
	if store == nil {
		return nil
	}
	return w.applyStatusFields(ctx, p, statusObjectOfStore(in), store)
}

// writeOutageStatuses reports that OpenFGA does not answer, in a Store and in the AuthorizationModels and members that wait for
// it.
func (w *statusWriter) writeOutageStatuses(ctx context.Context, p controller.UntypedRequest, in plan.Input, why setup.Outage,
	waiting []module.StatusTarget,
) error {
	var errs []error
	write := func(o statusObject, fields any) {
		err := why.WaitForStatusRateLimit(ctx)
		if err == nil {
			err = w.applyStatusFields(ctx, p, o, fields)
		}
		errs = append(errs, err)
	}
	if in.Store != nil {
		if fields, waits := plan.StoreOutageStatus(in, why.Message()); waits {
			write(statusObjectOfStore(in), fields)
		}
	}
	for _, m := range in.Modules {
		if m.Value.DeletionTimestamp != nil || m.Key.Cluster != w.cluster {
			continue
		}
		if fields, waits := plan.ModuleStatusDuringOutage(in, m, why.Message()); waits {
			write(statusObjectOfModule(m), fields)
		}
	}
	for _, m := range waiting {
		write(statusObject{m.Kind, m.Expected}, m.Status(plan.OutageVerdict(in, why.Message())).Fields)
	}
	return fault.Join(errs...)
}

// applyStatusFields writes status fields that the pass needs to continue. If the object is gone, the pass is stale.
func (w *statusWriter) applyStatusFields(ctx context.Context, p controller.UntypedRequest, o statusObject, fields any) error {
	o = w.withLatestState(o)
	now, err := w.writer.ApplyOwnFields(ctx, p, o.kind, o.is.Change(), fields)
	switch {
	case err == nil:
		return w.verifier.VerifyWriteAnswer(ctx, o.is, now)
	case errors.Is(err, kube.ErrNotFound):
		return w.writer.RefreshAsStale(ctx, o.kind, o.is.Change())
	default:
		return err
	}
}

// writeStoreStatus writes the status of a Store.
func (w *statusWriter) writeStoreStatus(ctx context.Context, p controller.UntypedRequest, in plan.Input, obs plan.Observed) error {
	fields := plan.DesiredStoreStatus(in, obs)
	status := plan.StoreStatusWithOutcome(in, obs, fields)
	written, err := w.writeStatus(ctx, p, statusObjectOfStore(in), status)
	if err == nil && !status.Same && !written {
		err = kube.ErrNotFound
	}
	return err
}

// writeStatus writes a status unless the object already has it, or is gone.
func (w *statusWriter) writeStatus(ctx context.Context, p controller.UntypedRequest, o statusObject, s moduleplan.ObjectStatus) (written bool, err error) {
	o = w.withLatestState(o)
	now, err := w.writer.Write(ctx, p, setup.StatusUpdate{
		Kind: o.kind, Object: o.is.Change(), Fields: s.Fields, Unchanged: s.Same, Outcome: s.Outcome, Message: s.Message, Events: s.Notes,
	})
	if err != nil || now.ResourceVersion == o.is.Change().ResourceVersion {
		return false, err
	}
	return true, w.verifier.VerifyWriteAnswer(ctx, o.is, now)
}
