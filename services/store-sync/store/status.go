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

// statuses writes missing parts of statuses, and reports the outcomes.
type statuses struct {
	// cluster is the cluster to which this service writes.
	cluster string
	state   *module.State
	writer  *setup.StatusWriter
	// verifier compares the API server's answers to status writes.
	verifier *verify.Verifier
}

// object is an object whose status is written, with the state on which the decision was based.
type object struct {
	kind kinds.Kind
	is   verify.Expected
}

func storeObject(in plan.Input) object { return object{kinds.Stores(), expectStore(in)} }

func moduleObject(m plan.Module) object {
	return object{kinds.AuthorizationModels(), module.ExpectModel(module.Model(m))}
}

// newestState returns o with the latest state of the object, if the basis of the decision is unchanged. tuple-sync writes to
// the same object.
func (w *statuses) newestState(o object) object {
	if now, ok := w.state.Expected(o.is.Change().Key); ok && now.Equals(o.is) {
		o.is = now
	}
	return o
}

// writeStatuses ends a pass. It writes the AuthorizationModels before the Store, for two reasons. A reader of the model
// in the Store's status can then find the live texts of that model. Tuples that wait for a module are written only
// after the module's live text is recorded. An object whose status cannot be written does not stop the others, because
// tuple-sync cannot write to it either. The statuses follow from the basis of the pass, not from later changes in the
// view.
func (w *statuses) writeStatuses(ctx context.Context, p controller.Reporter, in plan.Input, obs plan.Observed, members []module.Member) error {
	refused := w.writeModules(ctx, p, in, obs)
	if isPassing(refused) {
		return refused
	}
	switch {
	case obs.Released || in.Store == nil && in.Gone != nil:
		p.Report(in.Change, eventv1.Outcome_OUTCOME_APPLIED, "")
	case in.Store != nil:
		if err := w.writeStore(ctx, p, in, obs); err != nil {
			return err
		}
	}
	for _, m := range members {
		// A member that changed meanwhile gets a pass for its own event.
		_, err := w.writeStatus(ctx, p, object{m.Kind, m.Expected}, m.Status(plan.Verdict(in, obs, m.Carrier)))
		if err != nil && !errors.Is(err, reconcile.ErrStale) {
			return err
		}
	}
	return refused
}

// writeModules writes the statuses of all AuthorizationModels that it can write, and returns the other errors.
func (w *statuses) writeModules(ctx context.Context, p controller.Reporter, in plan.Input, obs plan.Observed) error {
	var refused []error
	for _, m := range in.Modules {
		if m.Value.DeletionTimestamp != nil || m.Key.Cluster != w.cluster {
			continue
		}
		_, err := w.writeStatus(ctx, p, moduleObject(m), plan.ModuleStatus(m.Value, plan.Verdict(in, obs, m.Key)))
		if isPassing(err) {
			return err
		}
		refused = append(refused, err)
	}
	return errors.Join(refused...)
}

// isPassing reports whether an error ends the pass. The API server's refusal to write one object does not.
func isPassing(err error) bool {
	return errors.Is(err, reconcile.ErrStale) || fault.IsUnavailable(err) && !errors.Is(err, kube.ErrForbidden)
}

// recordLive records the next live text in all objects from which the next model removes something. It also clears the
// digests that the model would make wrong. It reports nothing, because the pass continues.
func (w *statuses) recordLive(ctx context.Context, p controller.Reporter, in plan.Input) error {
	store, modules := plan.LiveRecords(in)
	for _, m := range in.Modules {
		if fields, ok := modules[m.Key]; ok {
			if err := w.applyFields(ctx, p, moduleObject(m), fields); err != nil {
				return err
			}
		}
	}
	if store == nil {
		return nil
	}
	return w.applyFields(ctx, p, storeObject(in), store)
}

// writeOutage reports that OpenFGA does not answer, in a Store and in the AuthorizationModels and members that wait for
// it.
func (w *statuses) writeOutage(ctx context.Context, p controller.Reporter, in plan.Input, why setup.Outage, waiting []module.Member) error {
	var errs []error
	write := func(o object, fields any) {
		err := why.Pace(ctx)
		if err == nil {
			err = w.applyFields(ctx, p, o, fields)
		}
		errs = append(errs, err)
	}
	if in.Store != nil {
		if fields, waits := plan.StoreOutage(in, why.Message()); waits {
			write(storeObject(in), fields)
		}
	}
	for _, m := range in.Modules {
		if m.Value.DeletionTimestamp != nil || m.Key.Cluster != w.cluster {
			continue
		}
		if fields, waits := plan.ModuleOutage(in, m, why.Message()); waits {
			write(moduleObject(m), fields)
		}
	}
	for _, m := range waiting {
		write(object{m.Kind, m.Expected}, m.Status(plan.OutageVerdict(in, why.Message())).Fields)
	}
	return fault.Join(errs...)
}

// applyFields writes status fields that the pass needs to continue. If the object is gone, the pass is stale.
func (w *statuses) applyFields(ctx context.Context, p controller.Reporter, o object, fields any) error {
	o = w.newestState(o)
	now, err := w.writer.Apply(ctx, p, o.kind, o.is.Change(), fields)
	switch {
	case err == nil:
		return w.verifier.VerifyAnswer(ctx, o.is, now)
	case errors.Is(err, kube.ErrNotFound):
		return w.writer.Refresh(ctx, o.kind, o.is.Change())
	default:
		return err
	}
}

// writeStore writes the status of a Store.
func (w *statuses) writeStore(ctx context.Context, p controller.Reporter, in plan.Input, obs plan.Observed) error {
	fields := plan.StoreStatus(in, obs)
	status := plan.Status(in, obs, fields)
	written, err := w.writeStatus(ctx, p, storeObject(in), status)
	if err == nil && !status.Same && !written {
		err = kube.ErrNotFound
	}
	return err
}

// writeStatus writes a status unless the object already has it, or is gone.
func (w *statuses) writeStatus(ctx context.Context, p controller.Reporter, o object, s moduleplan.Status) (written bool, err error) {
	o = w.newestState(o)
	now, err := w.writer.Write(ctx, p, setup.Status{
		Kind: o.kind, Object: o.is.Change(), Fields: s.Fields, Same: s.Same, Outcome: s.Outcome, Message: s.Message, Notes: s.Notes,
	})
	if err != nil || now.ResourceVersion == o.is.Change().ResourceVersion {
		return false, err
	}
	return true, w.verifier.VerifyAnswer(ctx, o.is, now)
}
