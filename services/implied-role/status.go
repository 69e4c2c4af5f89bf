package impliedrole

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
)

const (
	// maxChildren and maxChildBytes bound the list of child roles in a status. The API server
	// takes objects of 1.5 MiB, and writes each role down twice: whose field it is, too.
	maxChildren   = 5000
	maxChildBytes = 256 << 10
	// maxMessage bounds the message of a condition.
	maxMessage = 1024
)

// tell makes the status of every rule what it must be, and writes what differs.
func (p *pass) tell(ctx context.Context) error {
	facts := infer.StatusInput{Exists: p.Exists(p.namespace), Obstacles: p.troubles(p.namespace)}
	var (
		group    sync.WaitGroup
		parent   infer.Role
		children listed
	)
	judged, errs := p.book.Rules(), make([]error, len(p.rules))
	for _, i := range byParent(judged) {
		rule, s := p.rules[i], p.book.RuleStatus(judged[i], facts)
		if s.Parent != parent {
			parent, children = s.Parent, list(p.book.Implied(s.Parent))
		}
		status := statusOf(rule, s, children)
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
	return p.refusals(ctx, errs)
}

// refusals joins errors that waiting may cure. Any other is the fault of one rule, and
// concerns no other: it is noted, and the status is tried again at a resync.
func (p *pass) refusals(ctx context.Context, errs []error) error {
	for i, err := range errs {
		if err == nil || fault.IsUnavailable(err) {
			continue
		}
		rule := p.rules[i]
		p.log.WarnContext(ctx, "the API server refuses the status of a rule", slog.String("object", rule.Key.String()), slog.Any("error", err))
		p.results[rule.Key] = consume.Result{Change: rule.Change, Outcome: eventv1.Outcome_OUTCOME_PENDING, Message: "its status is refused: " + cause(err)}
		errs[i] = nil
	}
	return errors.Join(errs...)
}

func (p *pass) writeStatus(ctx context.Context, rule state.Rule, status rolev1alpha1.ImpliedRolesStatus) error {
	now, err := p.api.ApplyStatus(ctx, kinds.ImpliedRoles(), rule.Change, status, false)
	if errors.Is(err, kube.ErrNotFound) {
		return nil // The event that says so is on its way.
	}
	if err != nil {
		return err
	}
	now.ObservedAt, now.Traceparent = rule.ObservedAt, rule.Traceparent
	return p.view.Apply(ctx, now)
}

// byParent orders rules, by their numbers, such that those of one parent come together:
// its children are then listed once, and those of all parents never at a time.
func byParent(rules []infer.EvaluatedRule) []int {
	order := make([]int, len(rules))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return rules[a].Parent.Compare(rules[b].Parent) })
	return order
}

// listed is child roles as a status lists them, sorted, and how many are left out.
type listed struct {
	names []string
	more  int
}

func list(roles []infer.Role) listed {
	names, bytes := make([]string, 0, min(len(roles), maxChildren)), 0
	for _, r := range roles {
		name := r.String()
		if bytes += encoded(name); len(names) == maxChildren || bytes > maxChildBytes {
			break
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return listed{names, len(roles) - len(names)}
}

// encoded is about how long a text is in JSON: some letters are written as six.
func encoded(text string) int {
	n := len(text) + len(`"",`)
	for _, letter := range []byte(text) {
		if letter < ' ' || strings.IndexByte(`"\<>&`, letter) >= 0 {
			n += len(`\u0000`) - 1
		}
	}
	return n
}

// statusOf is s as the status of a rule. What time a condition changed is as before unless it did.
func statusOf(rule state.Rule, s infer.Status, children listed) rolev1alpha1.ImpliedRolesStatus {
	is := rule.Value.Status
	if children.more > 0 && s.Accepted.OK {
		s.Accepted.Message = fmt.Sprintf("%d further child roles follow and are not listed here: ask entail inferences", children.more)
	}
	status := rolev1alpha1.ImpliedRolesStatus{ObservedGeneration: rule.Generation}
	if s.Parent.Name != "" {
		status.Inferences = rolev1alpha1.RuleInferences{ParentRole: s.Parent.String(), ChildRoles: children.names}
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

func resultOf(rule state.Rule, s infer.Status) consume.Result {
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
