package impliedrole

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/view"
)

// cluster is what is needed of the API server to carry actions out.
type cluster interface {
	Get(ctx context.Context, kind kinds.Kind, namespace, name string) (event.Change, error)
	List(ctx context.Context, kind kinds.Kind, namespace string) iter.Seq2[event.Change, error]
	Newest(ctx context.Context, kind kinds.Kind, obj event.Change) (event.Change, error)
	Create(ctx context.Context, kind kinds.Kind, k event.Key, object runtime.Object) (event.Change, error)
	Merge(ctx context.Context, kind kinds.Kind, seen event.Change, fields map[string]any) (event.Change, error)
	Delete(ctx context.Context, kind kinds.Kind, obj event.Change) error
}

// applier carries plans out. Nothing else changes RoleBindings.
type applier struct {
	state   *state.State
	view    *view.View
	kube    cluster
	metrics *metrics
	log     *slog.Logger
	// writers has room for the changes that are made at a time, whatever the namespace. Statuses
	// have room of their own.
	writers chan struct{}
	// guard tells why nobody in a namespace may be given anything; nil if nothing speaks against it.
	guard func(ctx context.Context, namespace string) error
}

// applied is what became of plans.
type applied struct {
	// confirmer confirms what gives; nil before there is anything to give.
	confirmer *confirmer

	mu sync.Mutex
	// undone sources are to be planned for again: at once if what was planned from is stale, or
	// if something more urgent interrupted.
	undone             map[string]struct{}
	stale, interrupted bool
	// forbidden sources lack a right, of which nothing tells when it is given.
	forbidden map[string]error
	// err is the first error that waiting may cure.
	err error
	// obstacles and writes by source.
	obstacles map[string][]infer.Obstacle
	writes    map[string]int
	// withheld are roles that could not be given to everybody who must get them.
	withheld map[infer.Role]struct{}
}

// chunk is after how many bindings it is looked whether something more urgent may go first.
const chunk = 256

// apply carries plans out in the order of [infer.Schedule]. When something urgent has come
// meanwhile, it leaves the rest of what is to be given: taking away must not wait.
func (a *applier) apply(ctx context.Context, p consume.Reporter, n *namespace, plans []infer.Plan, urgent func() bool) *applied {
	done := &applied{
		undone: map[string]struct{}{}, forbidden: map[string]error{}, obstacles: map[string][]infer.Obstacle{},
		writes: map[string]int{}, withheld: map[infer.Role]struct{}{},
	}
	var actions []infer.Action
	for _, plan := range plans {
		actions = append(actions, plan.Actions...)
	}
	first, then, last := infer.Schedule(actions)
	a.all(ctx, p, n, slices.Values(first), done)
	done.confirmer = a.confirmer(ctx, n, plans, then)
	left := then
	a.all(ctx, p, n, func(yield func(infer.Action) bool) {
		for i, action := range then {
			if i%chunk == 0 && done.any() && urgent() || !yield(action) {
				return
			}
			left = then[i+1:]
		}
	}, done)
	if len(left) > 0 {
		done.interrupted = true
		done.leave(slices.Concat(left, last))
		return done
	}
	last = slices.DeleteFunc(last, func(action infer.Action) bool {
		_, withheld := done.withheld[action.Child]
		if withheld {
			done.leave([]infer.Action{action})
		}
		return withheld
	})
	a.all(ctx, p, n, slices.Values(last), done)
	return done
}

// all carries out actions, several at a time, and returns when all are done.
func (a *applier) all(ctx context.Context, p consume.Reporter, n *namespace, actions iter.Seq[infer.Action], done *applied) {
	var group sync.WaitGroup
	for action := range actions {
		a.writers <- struct{}{}
		group.Go(func() {
			defer func() { <-a.writers }()
			err := done.confirmer.confirm(ctx, action)
			if err == nil {
				err = a.one(ctx, p, n, action)
			}
			a.metrics.wrote(action.Verb, err)
			if done.note(action, err) {
				a.log.WarnContext(ctx, "the API server refuses a change of a RoleBinding", slog.String("verb", action.Verb.String()),
					slog.String("object", a.state.BindingKey(n.name, action.Name).String()), slog.Any("error", err))
			}
		})
	}
	group.Wait()
}

// one makes one change and takes its result into the view. What would go on granting after its
// deletion grants nothing before.
func (a *applier) one(ctx context.Context, p consume.Reporter, n *namespace, action infer.Action) error {
	last, there := a.state.Bindings.Last(a.state.BindingKey(n.name, action.Name))
	var seen view.Object[infer.Binding]
	if there {
		seen = last
	}
	if there != (action.Observed != nil) || there && !same(seen.Value, action.Observed) {
		return reconcile.ErrStale
	}
	if action.Verb == infer.Delete && seen.Value.Delayed() {
		first := action
		first.Verb = infer.Empty
		if err := a.one(ctx, p, n, first); err != nil {
			return err
		}
		seen, _ = a.state.Bindings.Get(seen.Key)
	}
	seen.Key = a.state.BindingKey(n.name, action.Name)
	now, err := a.call(ctx, seen.Change, action)
	if errors.Is(err, kube.ErrConflict) {
		if last.Key = seen.Key; !there { // What the bus told of its end may be no longer true.
			seen = last
		}
		return a.refresh(ctx, kinds.RoleBindings(), seen.Change)
	}
	if err != nil {
		return err
	}
	cause, _ := a.state.Bindings.Last(a.state.BindingKey(n.name, action.Source))
	if now.Deleted && seen.Value.Finalized {
		p.Count(cause.Change) // Its end is told when it comes.
		return nil
	}
	return n.ours(now, func() error { return p.Wrote(ctx, cause.Change, now) })
}

// call is one request, on the newest state or not at all.
func (a *applier) call(ctx context.Context, seen event.Change, action infer.Action) (event.Change, error) {
	kind := kinds.RoleBindings()
	switch action.Verb {
	case infer.Delete:
		gone := seen
		gone.Deleted, gone.ObservedAt = true, time.Now()
		return gone, a.kube.Delete(ctx, kind, seen)
	case infer.Empty:
		return a.kube.Merge(ctx, kind, seen, map[string]any{"subjects": []any{}})
	case infer.Create:
		return a.kube.Create(ctx, kind, seen.Key, action.Object())
	default:
		o := action.Object()
		return a.kube.Merge(ctx, kind, seen, map[string]any{"subjects": o.Subjects, "metadata": map[string]any{
			"labels": o.Labels, "annotations": o.Annotations, "ownerReferences": o.OwnerReferences,
		}})
	}
}

// same reports whether the view holds what an action was planned from, or what an earlier
// part of the same action made of it: an object that is ours, under the same UID.
func same(seen, planned *infer.Binding) bool { return seen.Generated() && seen.UID == planned.UID }

// refresh takes in what the view did not know yet, so that it is planned for anew.
func (a *applier) refresh(ctx context.Context, kind kinds.Kind, seen event.Change) error {
	now, err := a.kube.Newest(ctx, kind, seen)
	if err == nil && now.UID != "" {
		err = a.view.Correct(ctx, seen, now)
	}
	if err != nil {
		return err
	}
	return reconcile.ErrStale
}

// note keeps what became of an action. It reports whether the API server refused it.
func (d *applied) note(a infer.Action, err error) (refused bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil:
		d.writes[a.Source]++
	case errors.Is(err, reconcile.ErrStale):
		d.undone[a.Source], d.withheld[a.Child] = struct{}{}, struct{}{}
		d.stale = true
	case errors.Is(err, kube.ErrTerminating):
		// With the namespace everything goes.
	case errors.Is(err, kube.ErrForbidden):
		d.forbidden[a.Source] = err
		d.refused(a, err)
		return true
	case fault.IsUnavailable(err):
		d.undone[a.Source], d.withheld[a.Child] = struct{}{}, struct{}{}
		d.meet(a, infer.Pending, fmt.Sprintf("RoleBinding %s is still to be written", a.Name))
		if d.err == nil {
			d.err = err
		}
	default:
		d.refused(a, err)
		return true
	}
	return false
}

func (d *applied) refused(a infer.Action, err error) {
	d.meet(a, infer.Forbidden, fmt.Sprintf("the API server refuses RoleBinding %s: %s", a.Name, cause(err)))
}

func (d *applied) meet(a infer.Action, reason, message string) {
	d.obstacles[a.Source] = append(d.obstacles[a.Source], infer.Obstacle{Name: a.Name, Parent: a.Parent, Child: a.Child, Reason: reason, Message: message})
}

// any reports whether anything was written.
func (d *applied) any() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.writes) > 0
}

func (d *applied) leave(actions []infer.Action) {
	for _, a := range actions {
		d.undone[a.Source] = struct{}{}
	}
}
