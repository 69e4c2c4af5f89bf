package opensearchsync

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

const (
	// untilReady is the time to the next run for a cluster whose connection is not ready.
	untilReady = 5 * time.Second
	// untilForgotten is the time to the next attempt to drop a connection that is no longer needed.
	untilForgotten = 15 * time.Second
	// reporting is the kind whose runs also check a cluster without objects, so that its status reports whether it
	// answers.
	reporting = plan.ActionGroups
)

// reconciler keeps one document of one OpenSearch cluster in step with all objects that declare entities or entries in
// it.
type reconciler struct {
	state        *state
	connections  *connections
	secrets      secrets
	applier      *applier
	statuses     *statuses
	documents    documents
	reachability *reachability
	verifier     *verify.Verifier
	rivals       *foreignWriters
	contests     *uncertainWrites
	// poll is the interval at which Secrets that the watcher does not follow are read again.
	poll time.Duration
	// drift is the interval at which OpenSearch is compared with the objects without a known change.
	drift  time.Duration
	drifts *drifts
	log    *slog.Logger
}

// Keys implements [controller.Reconciler].
func (r *reconciler) Keys(object event.Key) []Key { return r.state.affectedKeys(object) }

// Reconcile implements [controller.Reconciler].
func (r *reconciler) Reconcile(ctx context.Context, p *controller.Request[Key]) error {
	unrecorded := obstacles{}
	return reconcile.Retry(p.Key, func() error { return r.runPass(ctx, p, unrecorded) })
}

func (r *reconciler) runPass(ctx context.Context, p *controller.Request[Key], unrecorded obstacles) error {
	declared, all := r.state.runInput(p.Key)
	cluster := declared.Value
	switch {
	case cluster == nil:
		err := r.cleanUp(ctx, p, all)
		if r.connections.dropUnneeded() {
			p.RequeueAfter(untilForgotten)
		}
		return err
	case len(all) == 0 && (p.Key.Kind != reporting || r.state.isUsed(p.Key.Cluster)):
		return nil
	}
	objects := r.statuses.membersOf(cluster, all)
	r.setObstacles(p, objects, unrecorded)
	if err := r.verifier.Verify(ctx, expectCluster(declared)); err != nil {
		return err
	}
	to, err := r.connections.connectTo(ctx, cluster)
	if waiting, ok := errors.AsType[*notReadyError](err); ok {
		p.RequeueAfter(untilReady)
		r.reachability.writeReachable(ctx, p, declared, waiting.reason, waiting.message)
		return r.statuses.reportWaiting(ctx, p, objects, plan.Verdict{State: opensearchv1.Pending, Reason: waiting.reason, Message: waiting.message})
	}
	if err != nil {
		return err
	}
	err = r.syncServer(ctx, p, syncInput{cluster: cluster, objects: objects, to: to, unrecorded: unrecorded})
	if r.isReporting(p.Key) { // Two kinds that get different answers would wake each other without an end.
		r.reachability.ofServer(ctx, p, declared, to)
	}
	if fault.IsUnavailable(err) && !errors.Is(err, reconcile.ErrStale) {
		return errors.Join(err, r.statuses.reportWaiting(ctx, p, objects, unavailableVerdict(err)))
	}
	return err
}

// isReporting returns whether runs of a key write the condition of its cluster: those of the first kind with objects.
func (r *reconciler) isReporting(k Key) bool {
	for _, kind := range plan.Kinds() {
		if len(r.state.tables[kind].objectsOf(k.Cluster, "")) > 0 {
			return kind == k.Kind
		}
	}
	return k.Kind == reporting
}

// unavailableVerdict returns the verdict for objects whose run is blocked by the API server or OpenSearch.
func unavailableVerdict(err error) plan.Verdict {
	if why := kube.Refusal(err); why != "" {
		return plan.Verdict{
			State: opensearchv1.Pending, Reason: "Forbidden", Message: "the API server refuses a change that must come first; it is repeated: " + why,
		}
	}
	return plan.Verdict{State: opensearchv1.Pending, Reason: "Unavailable", Message: search.Cause(err)}
}

// setObstacles sets the obstacles of objects for which nothing must be written now.
func (r *reconciler) setObstacles(p *controller.Request[Key], objects []object, unrecorded obstacles) {
	unrecorded.applyTo(objects)
	if r.rivals.hasForeign(objects, r.statuses.schemas.isForeign) {
		p.RequeueAfter(quiet)
	}
}

// cleanUp removes the entities of deleted objects from clusters that are no longer declared, for example when a
// namespace is deleted. Only the run that has removed the entity of an object releases it.
func (r *reconciler) cleanUp(ctx context.Context, p *controller.Request[Key], all []object) error {
	byCluster := map[string][]object{}
	for _, o := range all {
		uid := o.value.State().ManagedCluster
		byCluster[uid] = append(byCluster[uid], o)
	}
	var errs []error
	for _, uid := range slices.Sorted(maps.Keys(byCluster)) {
		objects := byCluster[uid]
		if r.state.isDeciding(uid, true) { // The runs of that cluster handle objects that are being deleted.
			objects = slices.DeleteFunc(objects, object.isDeleting)
		}
		errs = append(errs, r.cleanUpIn(ctx, p, uid, objects))
	}
	return fault.Join(errs...)
}

// cleanUpIn cleans up in one former cluster.
func (r *reconciler) cleanUpIn(ctx context.Context, p *controller.Request[Key], uid string, objects []object) error {
	if !slices.ContainsFunc(objects, func(o object) bool { return o.isDeleting() && o.hasRecord() }) {
		return r.statuses.withoutCluster(ctx, p, objects, "")
	}
	to, err := r.wayTo(ctx, p.Key.Cluster, uid)
	if waiting, ok := errors.AsType[*notReadyError](err); ok {
		p.RequeueAfter(untilForgotten)
		return r.statuses.withoutCluster(ctx, p, objects, waiting.message)
	}
	if err != nil {
		return err
	}
	for i := range objects {
		if !objects[i].isDeleting() {
			objects[i].obstacle = clusterMissing(objects[i])
		}
	}
	err = r.syncServer(ctx, p, syncInput{
		cluster: &opensearchv1.OpenSearchCluster{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}, objects: objects, to: to, cleanup: true,
		unrecorded: obstacles{},
	})
	if fault.IsUnavailable(err) && !errors.Is(err, reconcile.ErrStale) {
		return errors.Join(err, r.statuses.reportWaiting(ctx, p, slices.DeleteFunc(objects, func(o object) bool { return !o.isDeleting() }),
			unavailableVerdict(err)))
	}
	return err
}

// wayTo returns the connection to a cluster that is no longer declared: the open one, or one made from the last state
// of the cluster. The API server cannot confirm that state. Instead the record of an object of any kind must hold its
// digest, and that object is verified.
func (r *reconciler) wayTo(ctx context.Context, cluster event.Key, uid string) (*connection, error) {
	if to := r.connections.lastConnection(uid); to != nil {
		return to, nil
	}
	err := error(&notReadyError{"ClusterMissing", "how to reach it is not known any more"})
	for _, was := range r.state.former(uid) {
		for _, kind := range plan.Kinds() {
			for _, o := range r.state.tables[kind].objectsOf(cluster, uid) {
				kept, ok := copyIn(o.value)
				if !ok || kept.Cluster != uid || kept.Connection != digestOf(was.Value) {
					continue
				}
				if err = r.verifier.Verify(ctx, r.state.tables[kind].expectedState(o)); err == nil {
					return r.connections.connectTo(ctx, was.Value)
				}
			}
		}
	}
	return nil, err
}

// syncServer makes OpenSearch match the objects. Records are written before OpenSearch, and results after it.
func (r *reconciler) syncServer(ctx context.Context, p *controller.Request[Key], w syncInput) error {
	w.young = r.contests.observeTerm(p.Term())
	known := newPasswords()
	if p.Key.Kind == plan.Users && !w.cleanup {
		var err error
		if known, err = r.readPasswords(ctx, p, w); err != nil {
			return err
		}
	}
	w.unlock = func() {}
	defer func() { w.unlock() }()
	decided, err := r.observe(ctx, p, &w, known)
	if err != nil {
		return err
	}
	if err := r.statuses.holdMembers(ctx, p, w); err != nil {
		return err
	}
	if w.young && w.contest == 0 && decided.isUncertain(w) {
		r.contests.addUnanswered(p.Key)
		return reconcile.ErrStale
	}
	recorded, err := r.statuses.writeRecords(ctx, p, w, decided)
	if err != nil {
		return err
	}
	if recorded { // Decide again, so that the plan merges the newest listing.
		if w, decided, err = r.planAgain(ctx, p, w, known); err != nil {
			return err
		}
	}
	if known.needsMore(decided.actions) {
		w.to.tags = nil
		return reconcile.ErrStale
	}
	if err := r.verifier.Verify(ctx, r.state.expectedForDeletes(p.Key.Kind, w, decided)...); err != nil {
		return err
	}
	done, err := r.applier.applyActions(ctx, p, w, decided.actions, known)
	r.requestRuns(p, w, len(decided.actions) > 0, err == nil && len(done.undone) < len(decided.actions))
	if err != nil { // Earlier refusals are known even so.
		return errors.Join(err, r.statuses.writeRefusals(ctx, p, w, decided, done))
	}
	if err := r.statuses.writeResults(ctx, p, w, decided, done); err != nil {
		return err
	}
	r.drifts.reportDrift(ctx, p.Key, w, decided.actions, done)
	r.comeAgain(p, w, done)
	if decided.again {
		return reconcile.ErrStale
	}
	return nil
}

// requestRuns requests runs for keys that a change of this kind may affect. tried means that something was written, changed that
// it took effect: a refused change must not wake runs that are refused, too.
func (r *reconciler) requestRuns(p *controller.Request[Key], w syncInput, tried, changed bool) {
	if p.Key.Kind == plan.Users {
		w.to.logins.scheduleFlush(p.Term(), tried)
	}
	if !changed {
		return
	}
	switch p.Key.Kind {
	case plan.Mappings:
		for _, o := range r.state.bindingsSharing(r.connections.clustersSharing(w.to)) { // These bindings may have lost entries, too.
			p.Enqueue(0, Key{clusterKey(o.Key.Cluster, o.Key.Namespace, o.value.Cluster()), plan.Mappings})
		}
	case plan.Roles:
		p.Enqueue(0, Key{p.Key.Cluster, plan.Mappings})
	case plan.ActionGroups:
		p.Enqueue(0, Key{p.Key.Cluster, plan.Roles})
	case plan.Users, plan.Tenants: // No other kind names them.
	}
}

// comeAgain schedules the runs that must follow a completed one.
func (r *reconciler) comeAgain(p *controller.Request[Key], w syncInput, done applied) {
	if p.RequeueAfter(r.drift); done.left {
		p.Enqueue(0, p.Key)
	}
	if done.unlisted {
		p.RequeueAfter(untilReady)
	}
	if w.contest > 0 {
		p.RequeueAfter(w.contest)
	}
}

// observe reads the identity and the content of the server, and plans.
func (r *reconciler) observe(ctx context.Context, p *controller.Request[Key], w *syncInput, known *passwords) (d decision, err error) {
	if err := w.to.enterRun(w.cleanup); err != nil {
		return d, err
	}
	defer func() {
		if !w.to.leaveRun(err) {
			return
		}
		for _, kind := range plan.Kinds() { // The other kinds have waited for this answer.
			if kind != p.Key.Kind {
				p.Enqueue(0, Key{p.Key.Cluster, kind})
			}
		}
	}()
	if w.server, err = w.to.identifyServer(ctx); err == nil {
		w.unlock, err = r.documents.lock(ctx, p.Key.Kind, w.to)
	}
	if err == nil {
		w.contest = r.contested(p.Key, w.to) // Read before the listing: later changes are not in it.
		w.divideObjects(w.objects)
		d, err = r.listAndPlan(ctx, p.Key.Kind, *w, known)
	}
	return d, markUnavailable(err)
}

// planAgain plans once more, after records were written. The error is [reconcile.ErrStale] in a cleanup, or if the new plan
// needs further records or other passwords.
func (r *reconciler) planAgain(ctx context.Context, p *controller.Request[Key], w syncInput, known *passwords) (syncInput, decision, error) {
	if w.cleanup {
		return w, decision{}, reconcile.ErrStale
	}
	_, all := r.state.runInput(p.Key)
	w.divideObjects(r.statuses.membersOf(w.cluster, all))
	r.setObstacles(p, w.objects, w.unrecorded)
	if p.Key.Kind == plan.Users && !known.matchesObjects(w.objects) {
		return w, decision{}, reconcile.ErrStale
	}
	decided, err := r.listAndPlan(ctx, p.Key.Kind, w, known)
	if err == nil && r.statuses.hasUnrecorded(w, decided) {
		err = reconcile.ErrStale
	}
	return w, decided, err
}

// listAndPlan lists the entities and plans.
func (r *reconciler) listAndPlan(ctx context.Context, kind plan.Kind, w syncInput, known *passwords) (decision, error) {
	d := decision{outcomes: map[string]outcome{}}
	var referred map[string]plan.Entity
	if of, refers := kind.References(); refers {
		var err error
		if referred, err = w.to.client.List(ctx, of); err != nil {
			return d, markUnavailable(err)
		}
	}
	actual, err := w.to.client.List(ctx, kind)
	if err != nil {
		return d, markUnavailable(err)
	}
	if kind == plan.Mappings {
		others := bindingsElsewhere(r.state.bindingsSharing(r.connections.clustersSharing(w.to)), w.server)
		all := append(planBindings(w.objects, w.server, plan.Undecided(referred)), others...)
		made := plan.MappingsOf(all, actual, entityNames(referred), w.contest > 0)
		for uid, o := range made.Outcomes {
			d.outcomes[uid] = outcome{
				Verdict: o.Verdict, holds: len(o.Before)+len(o.After) > 0, before: provisionedEntries(o.Before),
				after: provisionedEntries(o.After), unseen: o.Unseen,
			}
		}
		d.actions, d.again = made.Actions, made.Again
		return d, nil
	}
	plans := func() []plan.Object {
		return plannedObjects(w.objects, w.server, known, actionGroups(kind, entityNames(referred), actual, w.objects))
	}
	made := plan.Objects(kind, plans(), actual)
	if kind == plan.Users && len(made.Actions) > 0 { // Mappings are read last, right before the write.
		grants, err := grantsOn(ctx, w.to.client)
		if err != nil {
			return d, markUnavailable(err)
		}
		made = plan.Objects(kind, withGrants(plans(), grants), actual)
	}
	for uid, o := range made.Outcomes {
		d.outcomes[uid] = outcome{Verdict: o.Verdict, existing: o.Existing, holds: o.Owns, trimmed: known.tags[uid].trimmed, unseen: o.Unseen}
	}
	d.actions, d.again = made.Actions, made.Again
	return d, nil
}

// grantsOn returns the grants of the protected roles on a server.
func grantsOn(ctx context.Context, client *search.Client) (plan.Grants, error) {
	roles, err := client.List(ctx, plan.Roles)
	if err != nil {
		return nil, err
	}
	mappings, err := client.List(ctx, plan.Mappings)
	return plan.GrantsOf(roles, mappings), err
}

// markUnavailable marks every error of a listing as [fault.Unavailable], because it is not the fault of an object.
func markUnavailable(err error) error {
	if fault.IsUnavailable(err) {
		return err
	}
	return fault.Unavailable(err)
}
