package mirror

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/tuple-sync/mirror/plan"
)

// The parts of statuses that are ours.
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
	resourceStatus struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	membershipStatus struct {
		User       *iamv1alpha1.Member `json:"user,omitempty"`
		Conditions []metav1.Condition  `json:"conditions,omitempty"`
	}
)

// said is what a status says, and is to say.
type said struct {
	says          confirm.Statement
	has, fields   any
	before, after []metav1.Condition
}

// status says of a declared object what became of it, once all that follows from it is in OpenFGA, or gone from there.
func (r *Reconciler) status(ctx context.Context, p Pass) error {
	return reconcile.Retry(p.Key, func() error {
		k := p.Key.owner
		f, live := r.State.kinds[k.GroupResource].last(k)
		if f.meta == nil {
			return nil
		}
		n, err := r.declared(ctx)
		if err != nil {
			return err
		}
		if _, unrecorded := r.State.unrecorded(k); n == nil || unrecorded != nil || !r.inStep(n, p.Key) {
			p.Reporter.Report(f.change, eventv1.Outcome_OUTCOME_PENDING, "the IAM store does not hold it yet")
			return nil
		}
		s := r.say(n, k, "")
		if !live || !f.alive || s == nil {
			p.Reporter.Report(f.change, eventv1.Outcome_OUTCOME_APPLIED, "")
			return nil
		}
		return r.write(ctx, p, f, s)
	})
}

// inStep tells whether all objects of OpenFGA hold what a declared one says of them. Else its key is asked for when they do.
func (r *Reconciler) inStep(n *snapshot, key Key) bool {
	for _, object := range r.State.speaksOf(key.owner) {
		r.copy.await(object, key)
		// What the model does not know yet is not there: it is looked at again when there is another.
		if !r.copy.holds(n.of.storeID, object, n.wanted(object)) {
			return false
		}
		r.copy.leave(object, key)
	}
	return true
}

// say finds out what is to be said; nil of a kind whose status is others'. Without a snapshot it is why nothing is known.
func (r *Reconciler) say(n *snapshot, k event.Key, outage string) *said {
	away := []condition.Condition{{
		Type: iamv1alpha1.Ready, Status: metav1.ConditionUnknown, Reason: corev1alpha1.BackendUnavailable, Message: outage,
	}}
	switch k.GroupResource {
	case kinds.ProtectedResources().GroupResource:
		o, _ := r.State.resources.rows.Get(k)
		if o.Value == nil || n == nil {
			return nil
		}
		followed := r.State.follows(iam.Type(o.Value.Spec.ServiceRef.Name, o.Value.Spec.Kind))
		s := newSaid(o.Generation, o.Value.Status.Conditions, []string{iamv1alpha1.Observed}, plan.Observed(followed, r.State.trust))
		s.says = r.State.resources.statement(o)
		s.has, s.fields = resourceStatus{s.before}, resourceStatus{s.after}
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
		s.says = r.State.roles.statement(o)
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
		s.says = r.State.bindings.statement(o)
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
		s.says = r.State.memberships.statement(o)
		s.has, s.fields = membershipStatus{o.Value.Status.User, s.before}, membershipStatus{o.Value.Status.User, s.after}
		return s
	}
	return nil
}

func newSaid(generation int64, has []metav1.Condition, types []string, set ...condition.Condition) *said {
	return &said{
		before: condition.Apply(has, types, 0, metav1.Time{}),
		after:  condition.Apply(has, types, generation, metav1.Now().Rfc3339Copy(), set...),
	}
}

func (r *Reconciler) write(ctx context.Context, p Pass, f found, s *said) error {
	kind, _ := kinds.Of(f.change.Key.GroupResource)
	status := controller.Status{
		Kind: kind, Object: f.change, Fields: s.fields, Same: equality.Semantic.DeepEqual(s.has, s.fields),
		Outcome: eventv1.Outcome_OUTCOME_APPLIED,
	}
	ready := s.after[0]
	for _, c := range s.after {
		if c.Type == iamv1alpha1.Ready {
			ready = c
		}
	}
	if ready.Type == iamv1alpha1.Ready && ready.Status != metav1.ConditionTrue {
		status.Outcome, status.Message = eventv1.Outcome_OUTCOME_REJECTED, ready.Message
		if c, ok := condition.Changed(s.before, s.after, iamv1alpha1.Ready); ok {
			status.Notes = []condition.Note{{Warning: true, Reason: c.Reason, Message: c.Message}}
		}
	}
	if !status.Same {
		if err := r.Confirmer.ConfirmRecord(ctx, s.says); err != nil {
			return err
		}
	}
	now, err := r.Status.Write(ctx, p.Reporter, status)
	if err != nil || now.ResourceVersion == f.change.ResourceVersion {
		return err
	}
	return r.Confirmer.Learn(ctx, s.says, now)
}
