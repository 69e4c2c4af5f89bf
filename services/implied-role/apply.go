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
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

// apiServerClient lists the calls of the API server that the applier needs.
type apiServerClient interface {
	Get(ctx context.Context, kind kinds.Kind, namespace, name string) (event.Change, error)
	List(ctx context.Context, kind kinds.Kind, namespace string) iter.Seq2[event.Change, error]
	ReadNewest(ctx context.Context, kind kinds.Kind, obj event.Change) (event.Change, error)
	Create(ctx context.Context, kind kinds.Kind, k event.Key, object runtime.Object) (event.Change, error)
	MergePatch(ctx context.Context, kind kinds.Kind, seen event.Change, fields map[string]any) (event.Change, error)
	Delete(ctx context.Context, kind kinds.Kind, obj event.Change) error
}

// planApplier executes plans. No other part of the service writes RoleBindings.
type planApplier struct {
	state   *state.State
	view    *informer.Informer
	kube    apiServerClient
	metrics *metrics
	log     *slog.Logger
	// writers bounds the writes in parallel over all namespaces. Statuses have their own bound.
	writers chan struct{}
	// guard returns nil if roles may be given in a namespace, and otherwise the reason. A nil guard allows all.
	guard func(ctx context.Context, namespace string) error
}

// applyResult holds the results of plans.
type applyResult struct {
	// verifier verifies actions that give roles. It is nil during the first stage, which only takes roles.
	verifier *verifier

	mu sync.Mutex
	// undone holds sources to plan again. stale means at once, because the plan was made from an old state. interrupted
	// means after more urgent work.
	undone             map[string]struct{}
	stale, interrupted bool
	// forbidden holds the sources for which the service lacks a permission. No change reports when it is granted.
	forbidden map[string]error
	// err is the first error that a retry may cure.
	err error
	// obstacles and writes are keyed by source.
	obstacles map[string][]infer.BindingObstacle
	writes    map[string]int
	// withheld holds the roles that could not be given to every subject that must get them.
	withheld map[infer.Role]struct{}
}

// chunk is the number of actions between two checks for more urgent work.
const chunk = 256

// applyPlans executes plans in the order of [infer.ScheduleActions]. If urgent work arrives after a write, it leaves the remaining
// actions that give roles, because revocations must not wait. A role is not taken last if it could not be given before.
func (a *planApplier) applyPlans(ctx context.Context, p controller.UntypedRequest, n *namespaceHistory, plans []infer.SourcePlan,
	urgent func() bool,
) *applyResult {
	done := &applyResult{
		undone: map[string]struct{}{}, forbidden: map[string]error{}, obstacles: map[string][]infer.BindingObstacle{},
		writes: map[string]int{}, withheld: map[infer.Role]struct{}{},
	}
	var actions []infer.Action
	for _, plan := range plans {
		actions = append(actions, plan.Actions...)
	}
	first, then, last := infer.ScheduleActions(actions)
	a.executeActions(ctx, p, n, slices.Values(first), done)
	done.verifier = a.newVerifier(ctx, n, plans, then)
	left := then
	a.executeActions(ctx, p, n, func(yield func(infer.Action) bool) {
		for i, action := range then {
			if i%chunk == 0 && done.hasAnyWrite() && urgent() || !yield(action) {
				return
			}
			left = then[i+1:]
		}
	}, done)
	if len(left) > 0 {
		done.interrupted = true
		done.addUnfinishedSources(slices.Concat(left, last))
		return done
	}
	last = slices.DeleteFunc(last, func(action infer.Action) bool {
		_, withheld := done.withheld[action.Child]
		if withheld {
			done.addUnfinishedSources([]infer.Action{action})
		}
		return withheld
	})
	a.executeActions(ctx, p, n, slices.Values(last), done)
	return done
}

// executeActions executes actions in parallel and returns when all are done.
func (a *planApplier) executeActions(ctx context.Context, p controller.UntypedRequest, n *namespaceHistory, actions iter.Seq[infer.Action], done *applyResult) {
	var group sync.WaitGroup
	for action := range actions {
		a.writers <- struct{}{}
		group.Go(func() {
			defer func() { <-a.writers }()
			err := done.verifier.verifyAction(ctx, action)
			if err == nil {
				err = a.executeAction(ctx, p, n, action)
			}
			a.metrics.countWrite(action.Verb, err)
			if done.recordActionResult(action, err) {
				a.log.WarnContext(ctx, "the API server refuses a change of a RoleBinding", slog.String("verb", action.Verb.String()),
					slog.String("object", a.state.BindingKey(n.name, action.Name).String()), slog.Any("error", err))
			}
		})
	}
	group.Wait()
}

// executeAction executes one action and stores the result in the informer. A binding that would keep granting its role
// after its deletion is emptied first.
func (a *planApplier) executeAction(ctx context.Context, p controller.UntypedRequest, n *namespaceHistory, action infer.Action) error {
	last, there := a.state.Bindings.GetOrTombstone(a.state.BindingKey(n.name, action.Name))
	var seen informer.Object[infer.Binding]
	if there {
		seen = last
	}
	if there != (action.Observed != nil) || there && !isPlannedBinding(seen.Value, action.Observed) {
		return reconcile.ErrStale
	}
	if action.Verb == infer.Delete && seen.Value.CanOutliveDeletion() {
		first := action
		first.Verb = infer.Empty
		if err := a.executeAction(ctx, p, n, first); err != nil {
			return err
		}
		seen, _ = a.state.Bindings.Get(seen.Key)
	}
	seen.Key = a.state.BindingKey(n.name, action.Name)
	now, err := a.sendAction(ctx, seen.Change, action)
	if errors.Is(err, kube.ErrConflict) {
		if last.Key = seen.Key; !there { // The tombstone in the informer may be out of date.
			seen = last
		}
		return a.refreshObject(ctx, kinds.RoleBindings(), seen.Change)
	}
	if err != nil {
		return err
	}
	cause, _ := a.state.Bindings.GetOrTombstone(a.state.BindingKey(n.name, action.Source))
	if now.Deleted && seen.Value.Finalized {
		p.CountWrite(cause.Change) // The deletion is reported when it completes.
		return nil
	}
	return n.storeOwnWrite(now, func() error { return p.RecordWrite(ctx, cause.Change, now) })
}

// sendAction sends one request. It fails with a conflict if the object is not as seen.
func (a *planApplier) sendAction(ctx context.Context, seen event.Change, action infer.Action) (event.Change, error) {
	kind := kinds.RoleBindings()
	switch action.Verb {
	case infer.Delete:
		gone := seen
		gone.Deleted, gone.ObservedAt = true, time.Now()
		return gone, a.kube.Delete(ctx, kind, seen)
	case infer.Empty:
		return a.kube.MergePatch(ctx, kind, seen, map[string]any{"subjects": []any{}})
	case infer.Create:
		return a.kube.Create(ctx, kind, seen.Key, action.ToRoleBinding())
	default:
		o := action.ToRoleBinding()
		return a.kube.MergePatch(ctx, kind, seen, map[string]any{"subjects": o.Subjects, "metadata": map[string]any{
			"labels": o.Labels, "annotations": o.Annotations, "ownerReferences": o.OwnerReferences,
		}})
	}
}

// isPlannedBinding reports whether the informer still holds the binding of the plan: a generated one with the same UID.
// An earlier part of the same action may have changed its subjects.
func isPlannedBinding(seen, planned *infer.Binding) bool {
	return seen.IsGenerated() && seen.UID == planned.UID
}

// refreshObject reads the newest state into the informer and returns [reconcile.ErrStale], so that the source is
// planned again.
func (a *planApplier) refreshObject(ctx context.Context, kind kinds.Kind, seen event.Change) error {
	now, err := a.kube.ReadNewest(ctx, kind, seen)
	if err == nil && now.UID != "" {
		err = a.view.ApplyAuthoritative(ctx, seen, now)
	}
	if err != nil {
		return err
	}
	return reconcile.ErrStale
}

// recordActionResult records the result of an action. It reports whether the API server refused it.
func (d *applyResult) recordActionResult(a infer.Action, err error) (refused bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil:
		d.writes[a.Source]++
	case errors.Is(err, reconcile.ErrStale):
		d.undone[a.Source], d.withheld[a.Child] = struct{}{}, struct{}{}
		d.stale = true
	case errors.Is(err, kube.ErrTerminating):
		// The namespace is being deleted, and all its objects with it.
	case errors.Is(err, kube.ErrForbidden):
		d.forbidden[a.Source] = err
		d.addRefusalObstacle(a, err)
		return true
	case fault.IsUnavailable(err):
		d.undone[a.Source], d.withheld[a.Child] = struct{}{}, struct{}{}
		d.addObstacle(a, infer.Pending, fmt.Sprintf("RoleBinding %s is still to be written", a.Name))
		if d.err == nil {
			d.err = err
		}
	default:
		d.addRefusalObstacle(a, err)
		return true
	}
	return false
}

func (d *applyResult) addRefusalObstacle(a infer.Action, err error) {
	d.addObstacle(a, infer.Forbidden, fmt.Sprintf("the API server refuses RoleBinding %s: %s", a.Name, innermostErrorText(err)))
}

func (d *applyResult) addObstacle(a infer.Action, reason, message string) {
	d.obstacles[a.Source] = append(d.obstacles[a.Source], infer.BindingObstacle{
		Name: a.Name, Parent: a.Parent, Child: a.Child,
		Reason: reason, Message: message,
	})
}

// hasAnyWrite reports whether at least one write succeeded.
func (d *applyResult) hasAnyWrite() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.writes) > 0
}

func (d *applyResult) addUnfinishedSources(actions []infer.Action) {
	for _, a := range actions {
		d.undone[a.Source] = struct{}{}
	}
}
