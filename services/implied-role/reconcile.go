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

// reconciler keeps generated RoleBindings and the statuses of rules in step with the informer.
type reconciler struct {
	state    *state.State
	memory   *passHistory
	applier  *planApplier
	statuses *statusReconciler
	// projection is nil unless rules are written to OpenFGA.
	projection *projection.Projector
}

// AffectedKeys implements [controller.Reconciler].
func (r *reconciler) AffectedKeys(k event.Key) []Key {
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

// DriftedKeys implements [controller.DriftDetector]. At a resync, all namespaces are planned completely and OpenFGA is read again.
func (r *reconciler) DriftedKeys(context.Context) ([]Key, error) {
	if r.projection != nil {
		r.projection.ForgetTuples()
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
		return reconcile.RetryWhileStale(p.Key, func() error { return r.statuses.reconcileStatuses(ctx, p) })
	}
	if p.Resync {
		r.memory.ensureNamespaceHistory(p.Key.Namespace).markAllChanged()
	}
	if err := reconcile.RetryWhileStale(p.Key, func() error { return r.reconcileBindings(ctx, p) }); err != nil || r.projection == nil {
		return err
	}
	return r.projection.SyncNamespace(ctx, p.Key.Namespace)
}

// reconcileBindings plans the sources that changes may concern, and executes the plans. Unfinished work is put back,
// even after a panic.
func (r *reconciler) reconcileBindings(ctx context.Context, p *controller.Request[Key]) error {
	namespace, n := p.Key.Namespace, r.memory.ensureNamespaceHistory(p.Key.Namespace)
	ruleSet := r.state.RuleSet(namespace)
	todo, before := n.takePendingChanges(), n.beginPass(ruleSet)
	end := passResult{news: p.Resync || !ruleSet.IsSameRuleSet(before)}
	defer func() {
		n.restoreChanges(todo)
		if n.endPass(end) {
			p.Enqueue(statusesLast, Key{Namespace: namespace, Statuses: true})
		}
	}()
	planned := r.planSources(n, ruleSet, before, &todo)
	done := r.applier.applyPlans(ctx, p, n, planned.plans, func() bool {
		return n.hasPendingChanges() || !r.state.RuleSet(namespace).IsSameRuleSet(ruleSet)
	})
	end.news = r.recordPassResults(ctx, p, planned, todo, done) || end.news
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
	case len(ruleSet.Rules()) == 0 && r.state.CountBindings(namespace) == 0:
		r.memory.forgetNamespace(namespace)
	}
	end.finished = true
	return nil
}

// plannedSources holds the plans of all sources in order, with the rule set from which they were made.
type plannedSources struct {
	ruleSet *infer.RuleSet
	plans   []infer.SourcePlan
}

// maxTakes bounds the times that one pass takes new changes while it plans.
const maxTakes = 8

// planSources plans the sources in todo, and those of changes that arrive meanwhile. Planning them together matters, because
// one plan may give a role that another plan takes.
func (r *reconciler) planSources(n *namespaceHistory, ruleSet, before *infer.RuleSet, todo *changeSet) plannedSources {
	plans, next := map[string]infer.SourcePlan{}, *todo
	for takes := 1; ; takes++ {
		r.addAffectedSources(n, ruleSet, before, &next)
		todo.all = false
		todo.mergeChanges(next)
		for source := range next.sources {
			plan := ruleSet.PlanSource(r.state.PlanInput(n.name, source))
			// Paused rules report TooManyBindings themselves.
			plan.Obstacles = slices.DeleteFunc(plan.Obstacles, func(o infer.BindingObstacle) bool { return o.Reason == infer.TooManyBindings })
			plans[source] = plan
		}
		if takes == maxTakes || !n.hasPendingChanges() {
			return plannedSources{ruleSet, slices.SortedFunc(maps.Values(plans), func(a, b infer.SourcePlan) int { return strings.Compare(a.Name, b.Name) })}
		}
		before, next = ruleSet, n.takePendingChanges()
	}
}

// addAffectedSources adds the sources that the changes may concern.
func (r *reconciler) addAffectedSources(n *namespaceHistory, ruleSet, before *infer.RuleSet, changes *changeSet) {
	if changes.all || before == nil {
		changes.addSources(r.state.PossibleSourceNames(n.name)...)
		for _, key := range r.state.DeletedKeys(n.name) {
			changes.gone[key] = struct{}{}
		}
		return
	}
	changes.addSources(n.sourcesNeedingBindings(changes.bindings)...)
	changes.addSources(r.state.OrphansAndClaimants(n.name, ruleSet)...)
	if ruleSet.IsSameRuleSet(before) {
		return
	}
	for _, role := range ruleSet.ChangedRoles(before) {
		for _, b := range r.state.ExplicitBindingsTo(n.name, role) {
			changes.addSources(b.Name)
		}
	}
}

// recordPassResults records the obstacles of each source, reports the results, and removes finished sources from todo. It
// reports whether statuses may change.
func (r *reconciler) recordPassResults(ctx context.Context, p *controller.Request[Key], made plannedSources, todo changeSet, done *applyResult) (news bool) {
	n, warnings := r.memory.ensureNamespaceHistory(p.Key.Namespace), maxWarnings
	for _, plan := range made.plans {
		obstacles := slices.Concat(plan.Obstacles, done.obstacles[plan.Name])
		slices.SortFunc(obstacles, infer.BindingObstacle.Compare)
		taken, changed := n.recordObstacles(plan.Name, obstacles)
		news = news || changed
		r.statuses.warnAboutMisleadingBindings(ctx, p.Key.Namespace, plan.Name, taken, &warnings)
		if _, left := done.undone[plan.Name]; !left {
			if done.forbidden[plan.Name] == nil {
				delete(todo.sources, plan.Name)
			}
			r.statuses.reportSourceResult(p, made.ruleSet, plan.Name, obstacles, done.writes[plan.Name])
		}
	}
	for key := range todo.gone {
		if _, left := done.undone[key.Name]; !left {
			if done.forbidden[key.Name] == nil {
				delete(todo.gone, key)
			}
			r.statuses.reportDeletedObject(p, key, done.obstacles[key.Name])
		}
	}
	return news
}
