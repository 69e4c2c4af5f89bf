package impliedrole

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/projection"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

// reconciler keeps generated RoleBindings and the statuses of rules in step with the view.
type reconciler struct {
	state    *state.State
	memory   *memory
	applier  *applier
	statuses *statusReconciler
	// projection is nil unless rules are written to OpenFGA.
	projection *projection.Projection
}

// Keys implements [controller.Reconciler].
func (r *reconciler) Keys(k event.Key) []Key {
	if k.Cluster != r.state.Cluster {
		return nil
	}
	switch k.GroupResource {
	case kinds.RoleBindings().GroupResource:
		return []Key{{Namespace: k.Namespace}}
	case kinds.ImpliedRoles().GroupResource:
		return []Key{{Namespace: k.Namespace}, {Namespace: k.Namespace, Statuses: true}}
	}
	if k.GroupResource == kinds.ClusterRoleBindings().GroupResource {
		return nil // ClusterRoleBindings imply nothing.
	}
	var keys []Key // Statuses report whether a Role or ClusterRole exists.
	for _, namespace := range r.state.NamespacesWithChild(k.Namespace, k.Name) {
		keys = append(keys, Key{Namespace: namespace, Statuses: true})
	}
	return keys
}

// Priority implements [controller.Prioritizer].
func (r *reconciler) Priority(k Key) int {
	if k.Statuses {
		return statusesLast
	}
	return bindingsFirst
}

// Observe implements [controller.Observer]. At a resync, all namespaces are planned completely and OpenFGA is read again.
func (r *reconciler) Observe(context.Context) ([]Key, error) {
	if r.projection != nil {
		r.projection.Forget()
	}
	var keys []Key
	for _, namespace := range r.memory.namespaceNames() {
		keys = append(keys, Key{Namespace: namespace})
	}
	return keys, nil
}

// Reconcile implements [controller.Reconciler].
func (r *reconciler) Reconcile(ctx context.Context, p *controller.Request[Key]) error {
	if p.Key.Statuses {
		return reconcile.Retry(p.Key, func() error { return r.statuses.reconcileStatuses(ctx, p) })
	}
	if p.Resync {
		r.memory.namespaceOf(p.Key.Namespace).markAll()
	}
	if err := reconcile.Retry(p.Key, func() error { return r.reconcileBindings(ctx, p) }); err != nil || r.projection == nil {
		return err
	}
	return r.projection.Sync(ctx, p.Key.Namespace)
}

// reconcileBindings plans the sources that changes may concern, and executes the plans. Unfinished work is put back,
// even after a panic.
func (r *reconciler) reconcileBindings(ctx context.Context, p *controller.Request[Key]) error {
	namespace, n := p.Key.Namespace, r.memory.namespaceOf(p.Key.Namespace)
	ruleSet := r.state.RuleSet(namespace)
	todo, before := n.takeChanges(), n.beginPass(ruleSet)
	end := ending{news: p.Resync || !ruleSet.IsSame(before)}
	defer func() {
		n.restoreChanges(todo)
		if n.endPass(end) {
			p.Enqueue(statusesLast, Key{Namespace: namespace, Statuses: true})
		}
	}()
	planned := r.planSources(n, ruleSet, before, &todo)
	done := r.applier.applyPlans(ctx, p, n, planned.plans, func() bool {
		return n.hasPending() || !r.state.RuleSet(namespace).IsSame(ruleSet)
	})
	end.news = r.concludePass(ctx, p, planned, todo, done) || end.news
	end.unfinished = done.stale || done.interrupted
	switch {
	case done.err != nil:
		return done.err
	case done.stale:
		return reconcile.ErrStale
	case done.interrupted:
		p.Enqueue(bindingsFirst, p.Key)
		return nil
	case len(done.forbidden) > 0:
		p.RequeueWithBackoff(errors.Join(slices.Collect(maps.Values(done.forbidden))...))
	case len(ruleSet.Rules()) == 0 && r.state.BindingCount(namespace) == 0:
		r.memory.forgetNamespace(namespace)
	}
	end.finished = true
	return nil
}

// planned holds the plans of all sources in order, with the rule set from which they were made.
type planned struct {
	ruleSet *infer.RuleSet
	plans   []infer.Plan
}

// maxTakes bounds the times that one pass takes new changes while it plans.
const maxTakes = 8

// planSources plans the sources in todo, and those of changes that arrive meanwhile. Planning them together matters, because
// one plan may give a role that another plan takes.
func (r *reconciler) planSources(n *namespace, ruleSet, before *infer.RuleSet, todo *changeSet) planned {
	plans, next := map[string]infer.Plan{}, *todo
	for takes := 1; ; takes++ {
		r.addConcerned(n, ruleSet, before, &next)
		todo.all = false
		todo.mergeSet(next)
		for source := range next.sources {
			plan := ruleSet.Plan(r.state.Snapshot(n.name, source))
			// Paused rules report TooManyBindings themselves.
			plan.Obstacles = slices.DeleteFunc(plan.Obstacles, func(o infer.Obstacle) bool { return o.Reason == infer.TooManyBindings })
			plans[source] = plan
		}
		if takes == maxTakes || !n.hasPending() {
			return planned{ruleSet, slices.SortedFunc(maps.Values(plans), func(a, b infer.Plan) int { return strings.Compare(a.Name, b.Name) })}
		}
		before, next = ruleSet, n.takeChanges()
	}
}

// addConcerned adds the sources that the changes may concern.
func (r *reconciler) addConcerned(n *namespace, ruleSet, before *infer.RuleSet, changes *changeSet) {
	if changes.all || before == nil {
		changes.addSources(r.state.Sources(n.name)...)
		for _, key := range r.state.Gone(n.name) {
			changes.gone[key] = struct{}{}
		}
		return
	}
	changes.addSources(n.waitingFor(changes.bindings)...)
	changes.addSources(r.state.Orphans(n.name, ruleSet)...)
	if ruleSet.IsSame(before) {
		return
	}
	for _, role := range ruleSet.Changed(before) {
		for _, b := range r.state.BindingsTo(n.name, role) {
			changes.addSources(b.Name)
		}
	}
}

// concludePass records the obstacles of each source, reports the results, and removes finished sources from todo. It
// reports whether statuses may change.
func (r *reconciler) concludePass(ctx context.Context, p *controller.Request[Key], made planned, todo changeSet, done *applied) (news bool) {
	n, warnings := r.memory.namespaceOf(p.Key.Namespace), maxWarnings
	for _, plan := range made.plans {
		obstacles := slices.Concat(plan.Obstacles, done.obstacles[plan.Name])
		slices.SortFunc(obstacles, infer.Obstacle.Compare)
		taken, changed := n.recordObstacles(plan.Name, obstacles)
		news = news || changed
		r.statuses.warnMisleading(ctx, p.Key.Namespace, plan.Name, taken, &warnings)
		if _, left := done.undone[plan.Name]; !left {
			if done.forbidden[plan.Name] == nil {
				delete(todo.sources, plan.Name)
			}
			r.statuses.reportSource(p, made.ruleSet, plan.Name, obstacles, done.writes[plan.Name])
		}
	}
	for key := range todo.gone {
		if _, left := done.undone[key.Name]; !left {
			if done.forbidden[key.Name] == nil {
				delete(todo.gone, key)
			}
			r.statuses.reportGone(p, key, done.obstacles[key.Name])
		}
	}
	return news
}
