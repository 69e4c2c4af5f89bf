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
	connections  *connectionPool
	secrets      secretValueReader
	applier      *planApplier
	statuses     *statusReporter
	documents    documentLocks
	reachability *reachabilityReporter
	lanes        *lanes
	verifier     *verify.Verifier
	rivals       *foreignWriterDetector
	contests     *uncertainWrites
	// poll is the interval at which Secrets that the watcher does not follow are read again.
	poll time.Duration
	// drift is the interval at which OpenSearch is compared with the objects without a known change.
	drift  time.Duration
	drifts *driftReporter
	log    *slog.Logger
}

// AffectedKeys implements [controller.Reconciler].
func (r *reconciler) AffectedKeys(object event.Key) []Key { return r.state.affectedKeys(object) }

// Reconcile implements [controller.Reconciler].
func (r *reconciler) Reconcile(ctx context.Context, p *controller.Request[Key]) error {
	unrecorded := obstaclesByUID{}
	return reconcile.RetryWhileStale(p.Key, func() error { return r.reconcileDocument(ctx, p, unrecorded) })
}

func (r *reconciler) reconcileDocument(ctx context.Context, p *controller.Request[Key], unrecorded obstaclesByUID) error {
	declared, all := r.state.runInput(p.Key)
	cluster := declared.Value
	switch {
	case cluster == nil:
		err := r.cleanUpUndeclaredClusters(ctx, p, all)
		if r.connections.closeUnneeded() {
			p.RequeueAfter(untilForgotten)
		}
		return err
	case len(all) == 0 && (p.Key.Kind != reporting || r.state.isClusterUsed(p.Key.Cluster)):
		return nil
	}
	objects := r.statuses.objectsHandledIn(cluster, all)
	r.setObstacles(p, objects, unrecorded)
	if err := r.verifier.Verify(ctx, expectedClusterState(declared)); err != nil {
		return err
	}
	to, err := r.connections.connectionFor(ctx, cluster)
	if waiting, ok := errors.AsType[*clusterNotReadyError](err); ok {
		p.RequeueAfter(untilReady)
		r.reachability.writeReachableCondition(ctx, p, declared, waiting.reason, waiting.message)
		return r.statuses.reportWaiting(ctx, p, objects, plan.Verdict{State: opensearchv1.Pending, Reason: waiting.reason, Message: waiting.message})
	}
	if err != nil {
		return err
	}
	err = r.syncServer(ctx, p, syncInput{cluster: cluster, objects: objects, to: to, unrecorded: unrecorded})
	if r.isReachabilityReporter(p.Key) { // Two kinds that get different answers would wake each other without an end.
		r.reachability.reportServer(ctx, p, declared, to)
	}
	if fault.IsUnavailable(err) && !errors.Is(err, reconcile.ErrStale) {
		return errors.Join(err, r.statuses.reportWaiting(ctx, p, objects, unavailableVerdict(err)))
	}
	return err
}

// isReachabilityReporter returns whether runs of a key write the condition of its cluster: those of the first kind with objects.
func (r *reconciler) isReachabilityReporter(k Key) bool {
	for _, kind := range plan.AllKinds() {
		if len(r.state.tables[kind].objectsOfCluster(k.Cluster, "")) > 0 {
			return kind == k.Kind
		}
	}
	return k.Kind == reporting
}

// unavailableVerdict returns the verdict for objects whose run is blocked by the API server or OpenSearch.
func unavailableVerdict(err error) plan.Verdict {
	if errors.Is(err, errBusy) {
		return plan.Verdict{State: opensearchv1.Pending, Reason: "Unavailable", Message: errBusy.Error()}
	}
	if why := kube.RefusalReason(err); why != "" {
		return plan.Verdict{
			State: opensearchv1.Pending, Reason: "Forbidden",
			Message: "the API server refuses an earlier change of this object; opensearch-sync tries again: " + why,
		}
	}
	return plan.Verdict{State: opensearchv1.Pending, Reason: "Unavailable", Message: search.UserMessage(err)}
}

// setObstacles sets the obstacles of objects for which nothing must be written now.
func (r *reconciler) setObstacles(p *controller.Request[Key], objects []declaredObject, unrecorded obstaclesByUID) {
	unrecorded.applyToObjects(objects)
	if r.rivals.markForeignWritten(objects, r.statuses.schemas.isForeignKind) {
		p.RequeueAfter(quiet)
	}
}

// cleanUpUndeclaredClusters removes the entities of deleted objects from clusters that are no longer declared, for example when a
// namespace is deleted. Only the run that has removed the entity of an object releases it.
func (r *reconciler) cleanUpUndeclaredClusters(ctx context.Context, p *controller.Request[Key], all []declaredObject) error {
	byCluster := map[string][]declaredObject{}
	for _, o := range all {
		uid := o.value.CommonStatus().ManagedCluster
		byCluster[uid] = append(byCluster[uid], o)
	}
	var errs []error
	for _, uid := range slices.Sorted(maps.Keys(byCluster)) {
		objects := byCluster[uid]
		if r.state.isNameOwner(uid, true) { // The runs of that cluster handle objects that are being deleted.
			objects = slices.DeleteFunc(objects, declaredObject.isDeleting)
		}
		errs = append(errs, r.cleanUpCluster(ctx, p, uid, objects))
	}
	return fault.Join(errs...)
}

// cleanUpCluster cleans up in one former cluster.
func (r *reconciler) cleanUpCluster(ctx context.Context, p *controller.Request[Key], uid string, objects []declaredObject) error {
	if !slices.ContainsFunc(objects, func(o declaredObject) bool { return o.isDeleting() && o.hasRecord() }) {
		return r.statuses.reportMissingCluster(ctx, p, objects, "")
	}
	to, err := r.connectToUndeclared(ctx, p.Key.Cluster, uid)
	if waiting, ok := errors.AsType[*clusterNotReadyError](err); ok {
		p.RequeueAfter(untilForgotten)
		return r.statuses.reportMissingCluster(ctx, p, objects, waiting.message)
	}
	if err != nil {
		return err
	}
	for i := range objects {
		if !objects[i].isDeleting() {
			objects[i].obstacle = clusterMissingVerdict(objects[i])
		}
	}
	err = r.syncServer(ctx, p, syncInput{
		cluster: &opensearchv1.OpenSearchCluster{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}, objects: objects, to: to, cleanup: true,
		unrecorded: obstaclesByUID{},
	})
	if fault.IsUnavailable(err) && !errors.Is(err, reconcile.ErrStale) {
		return errors.Join(err, r.statuses.reportWaiting(ctx, p, slices.DeleteFunc(objects, func(o declaredObject) bool { return !o.isDeleting() }),
			unavailableVerdict(err)))
	}
	return err
}

// connectToUndeclared returns the connection to a cluster that is no longer declared: the open one, or one made from the last state
// of the cluster. The API server cannot confirm that state. Instead the record of an object of any kind must hold its
// digest, and that object is verified.
func (r *reconciler) connectToUndeclared(ctx context.Context, cluster event.Key, uid string) (*clusterConnection, error) {
	if to := r.connections.existingConnection(uid); to != nil {
		return to, nil
	}
	err := error(&clusterNotReadyError{"ClusterMissing", "how to reach it is not known any more"})
	for _, was := range r.state.lastStateOfDeletedCluster(uid) {
		for _, kind := range plan.AllKinds() {
			for _, o := range r.state.tables[kind].objectsOfCluster(cluster, uid) {
				kept, ok := readRecordCopy(o.value)
				if !ok || kept.Cluster != uid || kept.Connection != connectionDigest(was.Value) {
					continue
				}
				if err = r.verifier.Verify(ctx, r.state.tables[kind].expectedObject(o)); err == nil {
					return r.connections.connectionFor(ctx, was.Value)
				}
			}
		}
	}
	return nil, err
}

// syncServer makes OpenSearch match the objects, in the lane of its cluster.
func (r *reconciler) syncServer(ctx context.Context, p *controller.Request[Key], w syncInput) error {
	large, leave, err := r.lanes.enterLanes(ctx, w.to)
	if err != nil {
		return err
	}
	defer leave()
	began := time.Now()
	w.lists = search.NewAllowance(large)
	err = r.syncDocument(ctx, p, w)
	if w.to.recordRun(time.Since(began), w.lists, err); errors.Is(err, search.ErrLarge) {
		return reconcile.ErrStale // The next attempt has room for large lists.
	}
	return err
}

// syncDocument makes a document of OpenSearch match the objects. Records are written before OpenSearch, and results after it.
func (r *reconciler) syncDocument(ctx context.Context, p *controller.Request[Key], w syncInput) error {
	known := newRunPasswords()
	if p.Key.Kind == plan.Users && !w.cleanup {
		var err error
		if known, err = r.readChangedPasswords(ctx, p, w); err != nil {
			return err
		}
	}
	w.unlock = func() {}
	defer func() { w.unlock() }()
	decided, err := r.observeAndPlan(ctx, p, &w, known)
	if err != nil {
		return err
	}
	if err := r.statuses.reportObjectsElsewhere(ctx, p, w); err != nil {
		return err
	}
	var since time.Time
	since, w.young = r.contests.observeTerm(p.Term(), w.to.answersSince())
	if w.young > 0 && w.contest == 0 && decided.hasUncertainWrite(w, func(uid string) bool { return r.contests.isRecordedSince(uid, since) }) {
		r.contests.addUncertain(p.Key, w.young)
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
	if known.needsUnreadPassword(decided.actions) {
		w.to.tags = nil
		return reconcile.ErrStale
	}
	if err := r.verifier.Verify(ctx, r.state.expectedDeletedObjects(p.Key.Kind, w, decided)...); err != nil {
		return err
	}
	done, err := r.applier.applyActions(ctx, p, w, decided.actions, known)
	r.enqueueDependentKeys(p, w, len(decided.actions) > 0, err == nil && len(done.undone) < len(decided.actions))
	if err != nil { // Earlier refusals are known even so.
		return errors.Join(err, r.statuses.writeRefusals(ctx, p, w, decided, done))
	}
	if err := r.statuses.writeResults(ctx, p, w, decided, done); err != nil {
		return err
	}
	r.drifts.reportDrift(ctx, p.Key, w, decided.actions, done)
	r.scheduleNextRuns(p, w, done)
	if decided.again {
		return reconcile.ErrStale
	}
	return nil
}

// enqueueDependentKeys requests runs for keys that a change of this kind may affect. tried means that something was written, changed that
// it took effect: a refused change must not wake runs that are refused, too.
func (r *reconciler) enqueueDependentKeys(p *controller.Request[Key], w syncInput, tried, changed bool) {
	if p.Key.Kind == plan.Users {
		w.to.logins.scheduleFlush(p.Term(), tried)
	}
	if !changed {
		return
	}
	switch p.Key.Kind {
	case plan.Mappings:
		for _, o := range r.state.objectsManagedBy(plan.Mappings, r.connections.clustersOnSameServer(w.to)) { // These bindings may have lost entries, too.
			p.Enqueue(0, Key{clusterKey(o.Key.Cluster, o.Key.Namespace, o.value.Cluster()), plan.Mappings})
		}
	case plan.Roles:
		p.Enqueue(0, Key{p.Key.Cluster, plan.Mappings})
	case plan.ActionGroups:
		p.Enqueue(0, Key{p.Key.Cluster, plan.Roles})
	case plan.Users, plan.Tenants: // No other kind names them.
	}
}

// scheduleNextRuns schedules the runs that must follow a completed one.
func (r *reconciler) scheduleNextRuns(p *controller.Request[Key], w syncInput, done applyResult) {
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

// observeAndPlan reads the identity and the content of the server, and plans.
func (r *reconciler) observeAndPlan(ctx context.Context, p *controller.Request[Key], w *syncInput, known *runPasswords) (d kindDecision, err error) {
	if err := w.to.beginRun(w.cleanup); err != nil {
		return d, err
	}
	defer func() {
		failed := err
		if errors.Is(err, search.ErrLarge) { // The server has answered.
			failed = nil
		}
		if !w.to.endRun(failed) {
			return
		}
		for _, kind := range plan.AllKinds() { // The other kinds have waited for this answer.
			if kind != p.Key.Kind {
				p.Enqueue(0, Key{p.Key.Cluster, kind})
			}
		}
	}()
	if w.server, err = w.to.identifyServer(ctx); err == nil {
		w.unlock, err = r.documents.lockDocument(ctx, p.Key.Kind, w.to)
	}
	if err == nil {
		w.contest = r.remainingUncertaintyOnServer(p.Key, w.to) // Read before the listing: later changes are not in it.
		w.splitByServer(w.objects)
		d, err = r.listAndPlan(ctx, p.Key.Kind, *w, known)
	}
	return d, markUnavailable(err)
}

// planAgain plans once more, after records were written. The error is [reconcile.ErrStale] in a cleanup, or if the new plan
// needs further records or other passwords.
func (r *reconciler) planAgain(ctx context.Context, p *controller.Request[Key], w syncInput, known *runPasswords) (syncInput, kindDecision, error) {
	if w.cleanup {
		return w, kindDecision{}, reconcile.ErrStale
	}
	_, all := r.state.runInput(p.Key)
	w.splitByServer(r.statuses.objectsHandledIn(w.cluster, all))
	r.setObstacles(p, w.objects, w.unrecorded)
	if p.Key.Kind == plan.Users && !known.coversObjects(w.objects) {
		return w, kindDecision{}, reconcile.ErrStale
	}
	decided, err := r.listAndPlan(ctx, p.Key.Kind, w, known)
	if err == nil && r.statuses.hasUnrecordedObject(w, decided) {
		err = reconcile.ErrStale
	}
	return w, decided, err
}

// listAndPlan lists the entities and plans.
func (r *reconciler) listAndPlan(ctx context.Context, kind plan.EntityKind, w syncInput, known *runPasswords) (kindDecision, error) {
	d := kindDecision{decisions: map[string]objectDecision{}}
	w.lists.Reset()
	var referred map[string]plan.Entity
	if of, refers := kind.ReferencedKind(); refers {
		var err error
		if referred, err = w.to.client.List(ctx, of, w.lists); err != nil {
			return d, markUnavailable(err)
		}
	}
	actual, err := w.to.client.List(ctx, kind, w.lists)
	if err != nil {
		return d, markUnavailable(err)
	}
	elsewhere := r.state.objectsManagedBy(kind, r.connections.clustersOnSameServer(w.to))
	if kind == plan.Mappings {
		others := bindingsOfOtherClusters(elsewhere, w.server)
		all := append(toPlanBindings(w.objects, w.server, plan.RolesUncheckedByAdmission(referred)), others...)
		for i := range all {
			all[i].Seen = r.contests.seenOf(all[i].UID)
		}
		made := plan.DecideMappings(all, actual, entityNameSet(referred), w.contest > 0)
		r.contests.addSeen(made.Outcomes, w.contest)
		for uid, o := range made.Outcomes {
			d.decisions[uid] = objectDecision{
				Verdict: o.Verdict, holds: len(o.Before)+len(o.After) > 0, before: toProvisioned(o.Before),
				after: toProvisioned(o.After), unseen: len(o.Unseen) > 0, mayAppear: toProvisioned(o.Unseen), drops: o.Drops,
			}
		}
		d.actions, d.again = made.Actions, made.Again
		return d, nil
	}
	plans := func() []plan.DeclaredObject {
		all := toPlanObjects(w.objects, w.server, known, knownActionGroups(kind, entityNameSet(referred), actual, w.objects))
		return append(all, claimsOfOtherClusters(elsewhere, w.server)...)
	}
	made := plan.DecideObjects(kind, plans(), actual)
	if kind == plan.Roles {
		written := kindDecision{actions: made.Actions}.uidsWithActions(func(a plan.Action) bool { return a.Body != nil })
		wrong, err := findUnparsableQueries(ctx, w.to.client, slices.DeleteFunc(slices.Clone(w.objects), func(o declaredObject) bool {
			return !written[string(o.value.GetUID())]
		}))
		if err != nil {
			return d, markUnavailable(err)
		}
		if len(wrong) > 0 {
			wrong.applyToObjects(w.objects)
			made = plan.DecideObjects(kind, plans(), actual)
		}
	}
	if kind == plan.Users && len(made.Actions) > 0 { // Mappings are read last, right before the write.
		users := plans()
		grants, err := listProtectedGrants(ctx, w.to.client, w.lists, plan.GrantNames(users, actual))
		if err != nil {
			return d, markUnavailable(err)
		}
		made = plan.DecideObjects(kind, withGrants(users, grants), actual)
	}
	for uid, o := range made.Outcomes {
		d.decisions[uid] = objectDecision{Verdict: o.Verdict, existing: o.Existing, holds: o.Owns, trimmed: known.tags[uid].trimmed, unseen: o.Unseen}
	}
	d.actions, d.again = made.Actions, made.Again
	return d, nil
}

// findUnparsableQueries returns the obstacles of roles with a query that the server cannot parse. OpenSearch would accept
// such a role, and fail each search of its users.
func findUnparsableQueries(ctx context.Context, client *search.Client, roles []declaredObject) (obstaclesByUID, error) {
	wrong := obstaclesByUID{}
	for _, o := range roles {
		for _, q := range plan.RoleQueries(o.value) {
			why, err := client.ExplainQueryError(ctx, q.Query)
			if err != nil {
				return nil, err
			}
			if why != "" {
				wrong[string(o.value.GetUID())] = q.UnparsableVerdict(why)
				break
			}
		}
	}
	return wrong, nil
}

// listProtectedGrants returns the grants of the protected roles on a server to users of the given names and backend roles.
func listProtectedGrants(ctx context.Context, client *search.Client, lists *search.Allowance, names map[string]bool) (grants plan.ProtectedGrants, err error) {
	roles, err := client.List(ctx, plan.Roles, lists)
	if err != nil {
		return grants, err
	}
	mappings, err := client.List(ctx, plan.Mappings, lists)
	return plan.FindProtectedGrants(roles, mappings, names), err
}

// markUnavailable marks every error of a listing as [fault.Unavailable], because it is not the fault of an object.
func markUnavailable(err error) error {
	if fault.IsUnavailable(err) {
		return err
	}
	return fault.Unavailable(err)
}
