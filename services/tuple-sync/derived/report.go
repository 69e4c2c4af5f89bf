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
	expected      verify.Expected
	has, fields   any
	before, after []metav1.Condition
}

// writeStatus writes the status of a declared object, once OpenFGA holds everything that follows from it, and nothing else.
func (r *Reconciler) writeStatus(ctx context.Context, p Pass) error {
	return reconcile.Retry(p.Key, func() error {
		k := p.Key.owner
		f, live := r.State.tableOf(k.GroupResource).lastFound(k)
		if f.meta == nil {
			return nil
		}
		if why := r.currentObstacle(); why != nil {
			return r.writeNotReady(ctx, p, f, *why)
		}
		n, err := r.declaredSnapshot(ctx)
		if err != nil {
			return err
		}
		if n == nil || r.State.unboundReference(k) != nil || !r.inStep(n, p.Key) {
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

// writeNotReady writes why a declared object is not in force. While the reason may pass soon (status Unknown), an object
// without a status gets none.
func (r *Reconciler) writeNotReady(ctx context.Context, p Pass, f found, why condition.Condition) error {
	p.Reporter.Report(f.change, eventv1.Outcome_OUTCOME_PENDING, why.Message)
	s := r.buildStatus(nil, f.change.Key, why)
	if is, live := r.State.tableOf(f.change.Key.GroupResource).lastFound(f.change.Key); s == nil || !live || !is.alive {
		return nil
	}
	if ready := meta.FindStatusCondition(s.before, iamv1alpha1.Ready); why.Status == metav1.ConditionUnknown && (ready == nil || ready.Status == why.Status) {
		return nil
	}
	return r.applyStatus(ctx, p, f, s)
}

// inStep reports whether all OpenFGA objects of a declared object hold exactly their wanted tuples. If not, the key
// waits for the first that does not.
func (r *Reconciler) inStep(n *snapshot, key Key) bool {
	for _, object := range r.State.statusDependsOn(key.owner, r.copy.mayHold) {
		if r.copy.hasExactly(n, object) {
			continue
		}
		r.copy.waitFor(object, key)
		// Check again: a pass may have finished before await. A tuple that the model does not allow keeps the key
		// waiting for another model.
		if !r.copy.hasExactly(n, object) {
			return false
		}
		r.copy.cancelWait(object, key)
	}
	return true
}

// buildStatus returns the status to write, or nil if other software owns it. Without a snapshot, away holds the condition that
// explains why.
func (r *Reconciler) buildStatus(n *snapshot, k event.Key, away ...condition.Condition) *statusUpdate {
	switch k.GroupResource {
	case kinds.ProtectedResources().GroupResource:
		o, _ := r.State.resources.rows.Get(k)
		if o.Value == nil || n == nil {
			return nil
		}
		s := newSaid(o.Generation, o.Value.Status.Conditions, []string{iamv1alpha1.Observed}, r.State.observedCondition(o.Value))
		s.expected = r.State.resources.expectedState(o)
		s.has, s.fields = conditionsStatus{s.before}, conditionsStatus{s.after}
		return s
	case kinds.IAMRoles().GroupResource:
		o, _ := r.State.roles.rows.Get(k)
		if o.Value == nil {
			return nil
		}
		effective, set := o.Value.Status.EffectivePermissions, away
		if n != nil {
			effective, set = plan.Role(n.objects, o.Value)
		}
		s := newSaid(o.Generation, o.Value.Status.Conditions, plan.RoleTypes(), set...)
		s.expected = r.State.roles.expectedState(o)
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
			set = plan.PolicyBinding(n.objects, o.Value)
		}
		s := newSaid(o.Generation, o.Value.Status.Conditions, plan.PolicyBindingTypes(), set...)
		s.expected = r.State.bindings.expectedState(o)
		s.has, s.fields = bindingStatus{o.Value.Status.ObservedGeneration, s.before}, bindingStatus{o.Generation, s.after}
		return s
	case kinds.GroupMemberships().GroupResource:
		o, _ := r.State.memberships.rows.Get(k)
		if o.Value == nil {
			return nil
		}
		set := away
		if n != nil {
			set = plan.GroupMembership(n.objects, o.Value)
		}
		s := newSaid(o.Generation, o.Value.Status.Conditions, plan.GroupMembershipTypes(), set...)
		s.expected = r.State.memberships.expectedState(o)
		s.has, s.fields = membershipStatus{o.Value.Status.User, s.before}, membershipStatus{o.Value.Status.User, s.after}
		return s
	case kinds.Users().GroupResource:
		return readyOnlyStatus(r.State.users, k, plan.User, away)
	case kinds.IAMServiceAccounts().GroupResource:
		return readyOnlyStatus(r.State.accounts, k, plan.ServiceAccount, away)
	case kinds.Groups().GroupResource:
		return readyOnlyStatus(r.State.groups, k, plan.Group, away)
	case kinds.Organizations().GroupResource:
		return readyOnlyStatus(r.State.organizations, k, plan.Organization, away)
	case kinds.Projects().GroupResource:
		s := readyOnlyStatus(r.State.projects, k, func(p *resourcemanagerv1alpha1.Project) condition.Condition { return plan.Project(n.objects, p) }, away)
		if o, _ := r.State.projects.rows.Get(k); s != nil {
			s.has, s.fields = projectStatus{o.Value.Status.Organization, s.before}, projectStatus{o.Value.Status.Organization, s.after}
		}
		return s
	}
	return nil
}

type conditioned[T any] interface {
	object[T]
	GetConditions() []metav1.Condition
}

// readyOnlyStatus returns the status of an object that has only the condition Ready. It returns nil if Ready has a reason of
// other software, whose condition then stays.
func readyOnlyStatus[T any, P conditioned[T]](t *table[T, P], k event.Key, judge func(*T) condition.Condition, away []condition.Condition) *statusUpdate {
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
	s := newSaid(o.Generation, has, []string{iamv1alpha1.Ready}, set...)
	s.expected = t.expectedState(o)
	s.has, s.fields = conditionsStatus{s.before}, conditionsStatus{s.after}
	return s
}

// newSaid orders the conditions as types does, because clients of the kinds' authors read them by position.
func newSaid(generation int64, has []metav1.Condition, types []string, set ...condition.Condition) *statusUpdate {
	return &statusUpdate{
		before: condition.InOrder(condition.Apply(has, types, 0, metav1.Time{}), types),
		after:  condition.InOrder(condition.Apply(has, types, generation, metav1.Now().Rfc3339Copy(), set...), types),
	}
}

func (r *Reconciler) applyStatus(ctx context.Context, p Pass, f found, s *statusUpdate) error {
	kind, _ := kinds.Of(f.change.Key.GroupResource)
	status := setup.Status{
		Kind: kind, Object: f.change, Fields: s.fields, Same: equality.Semantic.DeepEqual(s.has, s.fields),
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
		if c, ok := condition.Changed(s.before, s.after, iamv1alpha1.Ready); ok {
			status.Notes = []condition.Note{{Warning: true, Reason: c.Reason, Message: c.Message}}
		}
	}
	now, err := r.Status.Write(ctx, p.Reporter, status)
	if err != nil || now.ResourceVersion == f.change.ResourceVersion {
		return err
	}
	return r.Verifier.VerifyAnswer(ctx, s.expected, now)
}
