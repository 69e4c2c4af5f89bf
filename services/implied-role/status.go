package impliedrole

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/scene"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	// maxChildren and maxChildBytes bound the list of child roles in a status; the API has them all.
	maxChildren   = 5000
	maxChildBytes = 512 << 10
	// maxMessage bounds the message of a condition.
	maxMessage = 1024
)

// tell makes the status of every rule what it must be, and writes what differs.
func (p *pass) tell(ctx context.Context) error {
	facts := infer.Facts{Exists: p.Exists(p.namespace), Troubles: p.troubles(p.namespace)}
	children := map[infer.Role][]string{}
	var group sync.WaitGroup
	errs := make([]error, len(p.rules))
	for i, judged := range p.book.Rules() {
		rule := p.rules[i]
		s := p.book.Status(judged, facts)
		if _, ok := children[s.Parent]; !ok {
			children[s.Parent] = texts(s.Children)
		}
		status := statusOf(rule, s, children[s.Parent])
		p.results[rule.Key] = resultOf(rule, s)
		if equality.Semantic.DeepEqual(status, ours(rule.Value.Status)) {
			continue
		}
		p.writers <- struct{}{}
		group.Go(func() {
			defer func() { <-p.writers }()
			errs[i] = p.writeStatus(ctx, rule, status)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func (p *pass) writeStatus(ctx context.Context, rule scene.Rule, status rolev1alpha1.ImpliedRolesStatus) error {
	now, err := p.api.ApplyStatus(ctx, topology.ImpliedRoles(), rule.Change, status, false)
	if errors.Is(err, kube.ErrNotFound) {
		return nil // The event that says so is on its way.
	}
	if err != nil {
		return err
	}
	now.ObservedAt, now.Traceparent = rule.ObservedAt, rule.Traceparent
	return p.view.Apply(ctx, now)
}

// texts are roles as a status lists them, sorted.
func texts(roles []infer.Role) []string {
	list, bytes := make([]string, 0, min(len(roles), maxChildren)), 0
	for _, r := range roles {
		text := r.String()
		if bytes += len(text); len(list) == maxChildren || bytes > maxChildBytes {
			break
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

// statusOf is s as the status of a rule. What time a condition changed is as before unless it did.
func statusOf(rule scene.Rule, s infer.Status, children []string) rolev1alpha1.ImpliedRolesStatus {
	is := rule.Value.Status
	status := rolev1alpha1.ImpliedRolesStatus{ObservedGeneration: rule.Generation}
	if s.Parent.Name != "" {
		status.Inferences = rolev1alpha1.RuleInferences{ParentRole: s.Parent.String(), ChildRoles: children}
	}
	for _, c := range []struct {
		kind string
		infer.Condition
	}{
		{rolev1alpha1.Accepted, s.Accepted},
		{rolev1alpha1.Acyclic, s.Acyclic},
		{rolev1alpha1.ChildRoleFound, s.ChildRoleFound},
		{rolev1alpha1.Synced, s.Synced},
	} {
		condition := metav1.Condition{
			Type: c.kind, Status: metav1.ConditionFalse, Reason: c.Reason, Message: cut(c.Message), ObservedGeneration: rule.Generation,
		}
		if c.OK {
			condition.Status = metav1.ConditionTrue
		}
		all := kube.SetCondition(is.Conditions, condition)
		status.Conditions = append(status.Conditions, *meta.FindStatusCondition(all, c.kind))
	}
	return status
}

// ours is the part of a status that this service writes.
func ours(is rolev1alpha1.ImpliedRolesStatus) rolev1alpha1.ImpliedRolesStatus {
	var conditions []metav1.Condition
	for _, kind := range []string{rolev1alpha1.Accepted, rolev1alpha1.Acyclic, rolev1alpha1.ChildRoleFound, rolev1alpha1.Synced} {
		if c := meta.FindStatusCondition(is.Conditions, kind); c != nil {
			conditions = append(conditions, *c)
		}
	}
	is.Conditions = conditions
	return is
}

func resultOf(rule scene.Rule, s infer.Status) consume.Result {
	r := consume.Result{Change: rule.Change, Outcome: eventv1.Outcome_OUTCOME_APPLIED}
	switch {
	case !s.Accepted.OK:
		r.Outcome, r.Message = eventv1.Outcome_OUTCOME_REJECTED, s.Accepted.Message
	case !s.Synced.OK:
		r.Outcome, r.Message = eventv1.Outcome_OUTCOME_PENDING, s.Synced.Message
	}
	return r
}

// cause is an error of the API server for people, without what was being done.
func cause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return cut(err.Error())
		}
		err = inner
	}
}

func cut(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + fmt.Sprintf("… (%d more)", len(text)-maxMessage)
}
