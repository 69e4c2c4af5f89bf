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
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

// reconciler brings generated RoleBindings and the statuses of rules to what follows from the
// objects in the view.
type reconciler struct {
	state    *state.State
	memory   *memory
	applier  *applier
	statuses *statusReconciler
	// projection is nil unless rules are to be in OpenFGA, too.
	projection *projection.Projection
}

// Keys implements [consume.Reconciler].
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
		return nil // Nothing follows from these.
	}
	var keys []Key // Statuses tell whether a Role or ClusterRole exists.
	for _, namespace := range r.state.NamespacesWithChild(k.Namespace, k.Name) {
		keys = append(keys, Key{Namespace: namespace, Statuses: true})
	}
	return keys
}

// Priority implements [consume.Prioritizer].
func (r *reconciler) Priority(k Key) int {
	if k.Statuses {
		return statusesLast
	}
	return bindingsFirst
}

// Observe implements [consume.Observer]: at a resync all namespaces are planned anew, and
// OpenFGA is read again.
func (r *reconciler) Observe(context.Context) ([]Key, error) {
	if r.projection != nil {
		r.projection.Forget()
	}
	var keys []Key
	for _, namespace := range r.memory.names() {
		keys = append(keys, Key{Namespace: namespace})
	}
	return keys, nil
}

// Reconcile implements [consume.Reconciler].
func (r *reconciler) Reconcile(ctx context.Context, p *consume.Pass[Key]) error {
	if p.Key.Statuses {
		return reconcile.Retry(p.Key, func() error { return r.statuses.reconcile(ctx, p) })
	}
	if p.Resync {
		r.memory.of(p.Key.Namespace).everything()
	}
	if err := reconcile.Retry(p.Key, func() error { return r.reconcileBindings(ctx, p) }); err != nil || r.projection == nil {
		return err
	}
	return r.projection.Sync(ctx, p.Key.Namespace)
}

// reconcileBindings plans for the sources that changes may concern, and carries that out.
// Whatever is not done stays to be done, even after a panic.
func (r *reconciler) reconcileBindings(ctx context.Context, p *consume.Pass[Key]) error {
	namespace, n := p.Key.Namespace, r.memory.of(p.Key.Namespace)
	ruleSet := r.state.RuleSet(namespace)
	todo, before := n.take(), n.begin(ruleSet)
	end := ending{news: p.Resync || !ruleSet.Same(before)}
	defer func() {
		n.restore(todo)
		if n.end(end) {
			p.Enqueue(statusesLast, Key{Namespace: namespace, Statuses: true})
		}
	}()
	planned := r.plan(n, ruleSet, before, &todo)
	done := r.applier.apply(ctx, p, n, planned.plans, func() bool {
		return n.pending() || !r.state.RuleSet(namespace).Same(ruleSet)
	})
	end.news = r.conclude(ctx, p, planned, todo, done) || end.news
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
		p.Later(errors.Join(slices.Collect(maps.Values(done.forbidden))...))
	case len(ruleSet.Rules()) == 0 && r.state.BindingCount(namespace) == 0:
		r.memory.forget(namespace)
	}
	end.finished = true
	return nil
}

// planned is the plan for each source, in order, and the rules that they follow from.
type planned struct {
	ruleSet *infer.RuleSet
	plans   []infer.Plan
}

// maxTakes bounds how often changes are taken that come while a pass plans.
const maxTakes = 8

// plan makes the plans of the sources that are to do, and of those that changes concern which
// come meanwhile: what is taken from somebody by one may be given by the other.
func (r *reconciler) plan(n *namespace, ruleSet, before *infer.RuleSet, todo *changeSet) planned {
	plans, next := map[string]infer.Plan{}, *todo
	for takes := 1; ; takes++ {
		r.concern(n, ruleSet, before, &next)
		todo.all = false
		todo.merge(next)
		for source := range next.sources {
			plan := ruleSet.Plan(r.state.Snapshot(n.name, source))
			// Of too many bindings the rules tell.
			plan.Obstacles = slices.DeleteFunc(plan.Obstacles, func(o infer.Obstacle) bool { return o.Reason == infer.TooManyBindings })
			plans[source] = plan
		}
		if takes == maxTakes || !n.pending() {
			return planned{ruleSet, slices.SortedFunc(maps.Values(plans), func(a, b infer.Plan) int { return strings.Compare(a.Name, b.Name) })}
		}
		before, next = ruleSet, n.take()
	}
}

// concern adds to changes the sources to which they matter.
func (r *reconciler) concern(n *namespace, ruleSet, before *infer.RuleSet, changes *changeSet) {
	if changes.all || before == nil {
		changes.add(r.state.Sources(n.name)...)
		for _, key := range r.state.Gone(n.name) {
			changes.gone[key] = struct{}{}
		}
		return
	}
	changes.add(n.waitingFor(changes.bindings)...)
	changes.add(r.state.Orphans(n.name, ruleSet)...)
	if ruleSet.Same(before) {
		return
	}
	for _, role := range ruleSet.Changed(before) {
		for _, b := range r.state.BindingsTo(n.name, role) {
			changes.add(b.Name)
		}
	}
}

// conclude remembers what stands in the way, tells of that and of what was done, and takes it
// from todo. It reports whether statuses are to tell something else.
func (r *reconciler) conclude(ctx context.Context, p *consume.Pass[Key], made planned, todo changeSet, done *applied) (news bool) {
	n, warnings := r.memory.of(p.Key.Namespace), maxWarnings
	for _, plan := range made.plans {
		obstacles := slices.Concat(plan.Obstacles, done.obstacles[plan.Name])
		slices.SortFunc(obstacles, infer.Obstacle.Compare)
		taken, changed := n.meet(plan.Name, obstacles)
		news = news || changed
		r.statuses.warn(ctx, p.Key.Namespace, plan.Name, taken, &warnings)
		if _, left := done.undone[plan.Name]; !left {
			if done.forbidden[plan.Name] == nil {
				delete(todo.sources, plan.Name)
			}
			r.statuses.report(p, made.ruleSet, plan.Name, obstacles, done.writes[plan.Name])
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
