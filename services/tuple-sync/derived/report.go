package derived

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/tuple-sync/derived/plan"
)

// Our parts of statuses.
type (
	roleStatus struct {
		EffectivePermissions []string           `json:"effectivePermissions,omitempty"`
		ObservedGeneration   int64              `json:"observedGeneration"`
		Conditions           []metav1.Condition `json:"conditions"`
	}
	bindingStatus struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []metav1.Condition `json:"conditions"`
	}
	conditionsStatus struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	membershipStatus struct {
		User       *iamv1alpha1.Member `json:"user,omitempty"`
		Conditions []metav1.Condition  `json:"conditions,omitempty"`
	}
)

// statusUpdate holds the present and the next status of an object.
type statusUpdate struct {
	expected      verify.ExpectedState
	has, fields   any
	before, after []metav1.Condition
}

// writeStatus writes the status of a declared object, once OpenFGA holds everything that follows from it, and nothing else.
func (r *Reconciler) writeStatus(ctx context.Context, p ReconcileRequest) error {
	return reconcile.RetryWhileStale(p.Key, func() error {
		k := p.Key.owner
		f, live := r.State.tableOf(k.GroupResource).liveOrDeleted(k)
		if f.meta == nil {
			return nil
		}
		if why := r.iamStoreObstacle(); why != nil {
			return r.writeNotReadyStatus(ctx, p, f, *why)
		}
		n, err := r.declaredSnapshot(ctx)
		if err != nil {
			return err
		}
		if n == nil || r.State.findUnrecordedReference(k) != nil || !r.waitUnlessSynced(n, p.Key) {
			p.Reporter.Report(f.change, eventv1.Outcome_OUTCOME_PENDING, "the IAM store does not hold it yet")
			return nil
		}
		s := r.buildStatus(n, k)
		if !live || !f.alive || s == nil {
			p.Reporter.Report(f.change, eventv1.Outcome_OUTCOME_APPLIED, "")
			return nil
		}
		return r.applyStatus(ctx, p, f, s)
	})
}

// writeNotReadyStatus writes why a declared object is not in force. While the reason may pass soon (status Unknown), an object
// without a status gets none.
func (r *Reconciler) writeNotReadyStatus(ctx context.Context, p ReconcileRequest, f sourceObject, why condition.Condition) error {
	p.Reporter.Report(f.change, eventv1.Outcome_OUTCOME_PENDING, why.Message)
	s := r.buildStatus(nil, f.change.Key, why)
	if is, live := r.State.tableOf(f.change.Key.GroupResource).liveOrDeleted(f.change.Key); s == nil || !live || !is.alive {
		return nil
	}
	if ready := meta.FindStatusCondition(s.before, iamv1alpha1.Ready); why.Status == metav1.ConditionUnknown && (ready == nil || ready.Status == why.Status) {
		return nil
	}
	return r.applyStatus(ctx, p, f, s)
}

// waitUnlessSynced reports whether all OpenFGA objects of a declared object hold exactly their wanted tuples. If not, the key
// waits for the first that does not.
func (r *Reconciler) waitUnlessSynced(n *iamSnapshot, key Key) bool {
	for _, object := range r.State.statusDependsOn(key.owner, r.copy.canHoldTuples) {
		if r.copy.hasExactlyDesired(n, object) {
			continue
		}
		r.copy.addWaiter(object, key)
		// Check again: a pass may have finished before await. A tuple that the model does not allow keeps the key
		// waiting for another model.
		if !r.copy.hasExactlyDesired(n, object) {
			return false
		}
		r.copy.removeWaiter(object, key)
	}
	return true
}

// buildStatus returns the status to write, or nil if other software owns it. Without a snapshot, away holds the condition that
// explains why.
func (r *Reconciler) buildStatus(n *iamSnapshot, k event.Key, away ...condition.Condition) *statusUpdate {
	switch k.GroupResource {
	case kinds.ProtectedResources().GroupResource:
		o, _ := r.State.resources.rows.Get(k)
		if o.Value == nil || n == nil {
			return nil
		}
		s := newStatusUpdate(o.Generation, o.Value.Status.Conditions, []string{iamv1alpha1.Observed}, r.State.observedCondition(o.Value))
		s.expected = r.State.resources.expectedObject(o)
		s.has, s.fields = conditionsStatus{s.before}, conditionsStatus{s.after}
		return s
	case kinds.IAMRoles().GroupResource:
		o, _ := r.State.roles.rows.Get(k)
		if o.Value == nil {
			return nil
		}
		effective, set := o.Value.Status.EffectivePermissions, away
		if n != nil {
			effective, set = plan.RoleConditions(n.objects, o.Value)
		}
		s := newStatusUpdate(o.Generation, o.Value.Status.Conditions, plan.RoleConditionTypes(), set...)
		s.expected = r.State.roles.expectedObject(o)
		s.has = roleStatus{o.Value.Status.EffectivePermissions, o.Value.Status.ObservedGeneration, s.before}
		s.fields = roleStatus{effective, o.Generation, s.after}
		return s
	case kinds.PolicyBindings().GroupResource:
		o, _ := r.State.bindings.rows.Get(k)
		if o.Value == nil {
			return nil
		}
		set := away
		if n != nil {
			set = plan.PolicyBindingConditions(n.objects, o.Value)
		}
		s := newStatusUpdate(o.Generation, o.Value.Status.Conditions, plan.PolicyBindingConditionTypes(), set...)
		s.expected = r.State.bindings.expectedObject(o)
		s.has, s.fields = bindingStatus{o.Value.Status.ObservedGeneration, s.before}, bindingStatus{o.Generation, s.after}
		return s
	case kinds.GroupMemberships().GroupResource:
		o, _ := r.State.memberships.rows.Get(k)
		if o.Value == nil {
			return nil
		}
		set := away
		if n != nil {
			set = plan.GroupMembershipConditions(n.objects, o.Value)
		}
		s := newStatusUpdate(o.Generation, o.Value.Status.Conditions, plan.GroupMembershipConditionTypes(), set...)
		s.expected = r.State.memberships.expectedObject(o)
		s.has, s.fields = membershipStatus{o.Value.Status.User, s.before}, membershipStatus{o.Value.Status.User, s.after}
		return s
	case kinds.IAMUsers().GroupResource:
		return readyConditionStatus(r.State.users, k, plan.UserCondition, away)
	case kinds.IAMServiceAccounts().GroupResource:
		return readyConditionStatus(r.State.accounts, k, plan.ServiceAccountCondition, away)
	case kinds.IAMGroups().GroupResource:
		return readyConditionStatus(r.State.groups, k, plan.GroupCondition, away)
	case kinds.Organizations().GroupResource:
		return readyConditionStatus(r.State.organizations, k, plan.OrganizationCondition, away)
	case kinds.Projects().GroupResource:
		s := readyConditionStatus(r.State.projects, k, func(p *resourcemanagerv1alpha1.Project) condition.Condition {
			return plan.ProjectCondition(n.objects, p)
		}, away)
		if o, _ := r.State.projects.rows.Get(k); s != nil {
			s.has, s.fields = projectStatusFields{o.Value.Status.Organization, s.before}, projectStatusFields{o.Value.Status.Organization, s.after}
		}
		return s
	}
	return nil
}

type objectWithConditions[T any] interface {
	objectConstraint[T]
	GetConditions() []metav1.Condition
}

// readyConditionStatus returns the status of an object that has only the condition Ready. It returns nil if Ready has a reason of
// other software, whose condition then stays.
func readyConditionStatus[T any, P objectWithConditions[T]](t *table[T, P], k event.Key, judge func(*T) condition.Condition,
	away []condition.Condition,
) *statusUpdate {
	o, _ := t.rows.Get(k)
	if o.Value == nil {
		return nil
	}
	has := P(o.Value).GetConditions()
	if ready := meta.FindStatusCondition(has, iamv1alpha1.Ready); ready != nil && !plan.IsOurReason(ready.Reason) {
		return nil
	}
	set := away
	if len(away) == 0 {
		set = []condition.Condition{judge(o.Value)}
	}
	s := newStatusUpdate(o.Generation, has, []string{iamv1alpha1.Ready}, set...)
	s.expected = t.expectedObject(o)
	s.has, s.fields = conditionsStatus{s.before}, conditionsStatus{s.after}
	return s
}

// newStatusUpdate orders the conditions as types does, because clients of the kinds' authors read them by position.
func newStatusUpdate(generation int64, has []metav1.Condition, types []string, set ...condition.Condition) *statusUpdate {
	return &statusUpdate{
		before: condition.SortByType(condition.MergeConditions(has, types, 0, metav1.Time{}), types),
		after:  condition.SortByType(condition.MergeConditions(has, types, generation, metav1.Now().Rfc3339Copy(), set...), types),
	}
}

func (r *Reconciler) applyStatus(ctx context.Context, p ReconcileRequest, f sourceObject, s *statusUpdate) error {
	kind, _ := kinds.ByResource(f.change.Key.GroupResource)
	status := setup.StatusUpdate{
		Kind: kind, Object: f.change, Fields: s.fields, Unchanged: equality.Semantic.DeepEqual(s.has, s.fields),
		Outcome: eventv1.Outcome_OUTCOME_APPLIED,
	}
	ready := s.after[0]
	for _, c := range s.after {
		if c.Type == iamv1alpha1.Ready {
			ready = c
		}
	}
	switch {
	case ready.Reason == iamv1alpha1.NotAdopted, ready.Reason == iamv1alpha1.NoIAMStore:
		status.Outcome, status.Message = eventv1.Outcome_OUTCOME_PENDING, ready.Message // The author of the object cannot correct it here.
	case ready.Type == iamv1alpha1.Ready && ready.Status != metav1.ConditionTrue:
		status.Outcome, status.Message = eventv1.Outcome_OUTCOME_REJECTED, ready.Message
		if c, ok := condition.FindChangedCondition(s.before, s.after, iamv1alpha1.Ready); ok {
			status.Events = []condition.EventContent{{Warning: true, Reason: c.Reason, Message: c.Message}}
		}
	}
	now, err := r.Status.Write(ctx, p.Reporter, status)
	if err != nil || now.ResourceVersion == f.change.ResourceVersion {
		return err
	}
	return r.Verifier.VerifyWriteAnswer(ctx, s.expected, now)
}
