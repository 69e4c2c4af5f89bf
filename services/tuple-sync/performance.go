package tuplesync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/tuple-sync/plan"
)

// performance carries out one plan. An error at any point leaves what the next plan
// can take up; [errAnew] asks for that plan at once.
type performance struct {
	*reconciler
	*survey
	*tally
	plan plan.Plan
}

// tally is what a reconciliation has come to, over all its plans.
type tally struct {
	pass *consume.Pass[Key]
	// stuck are objects that the API server refuses to change, by UID. The others go on.
	stuck map[string]error
}

func (p *performance) perform(ctx context.Context) error {
	if err := p.each(ctx, p.hold); err != nil {
		return err
	}
	if slices.ContainsFunc(p.plan.Steps, func(s plan.Step) bool { return s.Hold }) {
		return errAnew // The objects may have changed by then.
	}
	if err := p.each(ctx, p.confirm); err != nil {
		return err
	}
	if err := p.each(ctx, p.before); err != nil {
		return err
	}
	if err := p.write(ctx); err != nil {
		return err
	}
	if err := p.each(ctx, p.after); err != nil {
		return err
	}
	return p.each(ctx, p.release)
}

// each does one thing to all objects.
func (p *performance) each(ctx context.Context, do func(context.Context, plan.Step, *object) error) error {
	for _, s := range p.plan.Steps {
		o := p.objects[s.UID]
		err := do(ctx, s, o)
		switch {
		case err == nil:
		case errors.Is(err, errAnew), fault.IsUnavailable(err):
			return err
		default:
			p.log.WarnContext(ctx, "object cannot be changed", slog.String("object", o.Key.String()), slog.Any("error", err))
			p.stuck[o.UID] = err
			return errAnew
		}
	}
	return nil
}

// hold puts our finalizer on an object.
func (p *performance) hold(ctx context.Context, s plan.Step, o *object) error {
	if !s.Hold {
		return nil
	}
	change, err := p.cluster.AddFinalizer(ctx, o.kind, o.change, corev1alpha1.TuplesFinalizer)
	if err == nil {
		o.Held = true
	}
	return p.settle(ctx, o, change, err)
}

// confirm asks the API server whether the Store is really gone before a record is
// given up without a call to OpenFGA: the bus may not have told of the Store yet.
func (p *performance) confirm(ctx context.Context, s plan.Step, o *object) error {
	if s.After == nil || !s.Abandons() || o.store.Cluster != o.Key.Cluster {
		return nil
	}
	store, err := p.cluster.Get(ctx, kinds.Stores(), "", o.store.Name)
	if errors.Is(err, kube.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := p.view.Apply(ctx, store); err != nil {
		return fmt.Errorf("taking in %s: %w", o.store, err)
	}
	return errAnew
}

func (p *performance) before(ctx context.Context, s plan.Step, o *object) error {
	return p.record(ctx, o, s.Before)
}

func (p *performance) after(ctx context.Context, s plan.Step, o *object) error {
	return p.record(ctx, o, s.After)
}

// record writes e by compare-and-swap, again if all that has changed does not concern us.
func (p *performance) record(ctx context.Context, o *object, e *plan.Entry) error {
	if e == nil {
		return nil
	}
	for range maxTries {
		change, err := p.cluster.ApplyStatus(ctx, o.kind, o.change, o.status(e), true)
		if err == nil {
			o.Record, o.Condition = e.Record, e.Condition
			p.memory.learn(p.StoreID, *o)
		}
		conflict := errors.Is(err, kube.ErrConflict)
		if err := p.settle(ctx, o, change, err); err != nil || !conflict {
			return err
		}
	}
	return errAnew
}

// release takes our finalizer off.
func (p *performance) release(ctx context.Context, s plan.Step, o *object) error {
	if !s.Release {
		return nil
	}
	change, err := p.cluster.RemoveFinalizer(ctx, o.kind, o.change, corev1alpha1.TuplesFinalizer)
	if err != nil {
		return err
	}
	if err := p.pass.Wrote(ctx, o.change, change); err != nil {
		return err
	}
	o.change = change
	return nil
}

// settle takes in what came of a write: the object's new state or, after a conflict, the
// one that somebody else wrote. It is errAnew when the plan was not made for that state.
func (p *performance) settle(ctx context.Context, o *object, change event.Change, err error) error {
	if err == nil {
		err = p.pass.Wrote(ctx, o.change, change)
	} else if errors.Is(err, kube.ErrConflict) || errors.Is(err, kube.ErrNotFound) {
		err = p.refresh(ctx, o)
	}
	if err != nil {
		return err
	}
	now, ok := p.lookUp(o.Key)
	if !ok || !sameFor(*o, now) {
		return errAnew
	}
	*o = now
	return nil
}

// refresh takes an object that is not as it was into the view.
func (p *performance) refresh(ctx context.Context, o *object) error {
	change, err := p.cluster.Get(ctx, o.kind, o.Key.Namespace, o.Key.Name)
	if errors.Is(err, kube.ErrNotFound) {
		change, err = o.change, nil
		change.Deleted = true
	}
	if err != nil {
		return err
	}
	change.ObservedAt, change.Traceparent = o.change.ObservedAt, o.change.Traceparent
	if err := p.view.Apply(ctx, change); err != nil {
		return fmt.Errorf("taking in %s: %w", o.Key, err)
	}
	return nil
}

// sameFor means that a plan made for one state holds for the other.
func sameFor(was, now object) bool {
	return was.UID == now.UID && was.Generation == now.Generation && was.Held == now.Held &&
		was.Home == now.Home && reflect.DeepEqual(was.Record, now.Record)
}
