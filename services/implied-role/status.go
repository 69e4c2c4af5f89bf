package impliedrole

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/internal/truncate"
)

const (
	// maxChildren bounds the child roles in a status. The list contains all implied roles, and the status is written
	// again at each change of the list.
	maxChildren = 100
	// untilInForce is the time until the next check whether the webhooks are in force.
	untilInForce = time.Second
	// maxCause bounds the bytes of an error in a message.
	maxCause = 1024
)

// statusWriter writes statuses and Events.
type statusWriter interface {
	Write(ctx context.Context, p controller.UntypedRequest, s setup.StatusUpdate) (event.Change, error)
	RecordEvents(ctx context.Context, about event.Change, notes ...condition.EventContent)
}

// statusReconciler keeps the statuses of rules in step, and reports the results of bindings.
type statusReconciler struct {
	state  *state.State
	memory *passHistory
	writer statusWriter
	// since returns the time since which every author of a rule is checked, or zero without webhooks. If look is true,
	// it first verifies that the webhooks are registered.
	since func(ctx context.Context, look bool) (time.Time, error)
	// writers bounds the statuses that are written in parallel.
	writers chan struct{}
	log     *slog.Logger
}

// reconcileStatuses writes the status of every rule that differs. It does nothing while bindings are being written: that pass
// enqueues statuses when it ends. It stops and requeues itself if keys of a higher priority wait.
func (r *statusReconciler) reconcileStatuses(ctx context.Context, p *controller.Request[Key]) error {
	namespace, n := p.Key.Namespace, r.memory.findNamespaceHistory(p.Key.Namespace)
	if n == nil {
		return nil
	}
	if wait := n.statusDelay(); wait > 0 {
		p.RequeueAfter(wait)
		return nil
	}
	ruleSet, rules := r.state.RuleSetAndRules(namespace)
	obstacles, known := n.collectObstacles(ruleSet)
	if !known {
		return nil
	}
	var (
		group    sync.WaitGroup
		parent   infer.Role
		children childRoleList
	)
	since, unknown := r.since(ctx, slices.ContainsFunc(rules, needsJudgedCondition)) // After the rules were read, so the check covers all of them.
	if unknown != nil {
		p.RequeueAfter(untilInForce)
	}
	judged := func(rule state.Rule) []condition.Condition {
		if unknown != nil {
			return nil // The condition Judged stays as it is.
		}
		return []condition.Condition{infer.JudgedCondition(rule.Value, since)}
	}
	started, warnings := time.Now(), maxWarnings
	in, evaluated, errs := infer.StatusInput{Exists: r.state.RoleExistsFunc(namespace), Obstacles: obstacles}, ruleSet.Rules(), make([]error, len(rules))
	for _, i := range sortIndexesByParent(evaluated) {
		status := ruleSet.ComputeStatus(evaluated[i], in)
		if status.Parent != parent {
			parent, children = status.Parent, newChildRoleList(ruleSet.ImpliedRoles(status.Parent))
		}
		write := buildRuleStatus(rules[i], status, children, judged(rules[i])...)
		if write.Unchanged {
			p.Report(write.Object, write.Outcome, write.Message)
			continue
		}
		if p.ShouldYield() {
			p.Enqueue(statusesLast, p.Key)
			break
		}
		if warnings -= len(write.Events); warnings < 0 {
			write.Events = nil
		}
		r.writers <- struct{}{}
		group.Go(func() {
			defer func() { <-r.writers }()
			_, errs[i] = r.writer.Write(ctx, p, write)
		})
	}
	group.Wait()
	n.recordStatusWriteDuration(time.Since(started))
	return r.joinRetriableErrors(ctx, p, rules, errs)
}

// needsJudgedCondition reports whether the condition Judged is missing for the current generation of a rule.
func needsJudgedCondition(rule state.Rule) bool {
	said := meta.FindStatusCondition(rule.Value.Status.Conditions, rolev1alpha1.Judged)
	return said == nil || said.ObservedGeneration != rule.Value.Generation
}

// joinRetriableErrors joins the errors that a retry may cure. A refusal concerns one rule only. It is logged and reported, and the
// status is tried again at a resync, or sooner if a permission was missing.
func (r *statusReconciler) joinRetriableErrors(ctx context.Context, p *controller.Request[Key], rules []state.Rule, errs []error) error {
	for i, err := range errs {
		forbidden := errors.Is(err, kube.ErrForbidden)
		if err == nil || !forbidden && fault.IsUnavailable(err) || errors.Is(err, reconcile.ErrStale) {
			continue
		}
		rule := rules[i]
		r.log.WarnContext(ctx, "the API server refuses the status of a rule", slog.String("object", rule.Key.String()), slog.Any("error", err))
		p.Report(rule.Change, eventv1.Outcome_OUTCOME_PENDING, "its status is refused: "+innermostErrorText(err))
		if errs[i] = nil; forbidden {
			p.RequeueWithBackoff(err)
		}
	}
	return fault.Join(errs...)
}

// sortIndexesByParent returns the indexes of the rules, ordered by parent. So the children of a parent are listed once, and only
// one list is in memory.
func sortIndexesByParent(rules []infer.EvaluatedRule) []int {
	order := make([]int, len(rules))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return rules[a].Parent.Compare(rules[b].Parent) })
	return order
}

// childRoleList is the sorted list of child roles in a status. more means that some are left out.
type childRoleList struct {
	names []string
	more  bool
}

func newChildRoleList(roles []infer.Role) childRoleList {
	names := make([]string, min(len(roles), maxChildren))
	for i := range names {
		names[i] = roles[i].String()
	}
	slices.Sort(names)
	return childRoleList{names, len(roles) > maxChildren}
}

// buildRuleStatus returns the status to write for a rule. A condition that does not change keeps its transition time.
func buildRuleStatus(rule state.Rule, s infer.RuleStatus, children childRoleList, further ...condition.Condition) setup.StatusUpdate {
	if children.more && s.Accepted.IsTrue() { // A number would be written again at each change.
		s.Accepted.Message = fmt.Sprintf("more child roles follow than the %d that are listed here: ask entail inferences", maxChildren)
	}
	fields, has := rolev1alpha1.ImpliedRolesStatus{ObservedGeneration: rule.Generation}, rule.Value.Status
	if s.Parent.Name != "" {
		fields.Inferences = rolev1alpha1.RuleInferences{ParentRole: s.Parent.String(), ChildRoles: children.names}
	}
	ours := []string{rolev1alpha1.Accepted, rolev1alpha1.Acyclic, rolev1alpha1.ChildRoleFound, rolev1alpha1.Judged, rolev1alpha1.Synced, rolev1alpha1.Ready}
	fields.Conditions = condition.MergeConditions(has.Conditions, ours, rule.Generation, metav1.Now(), append(s.Conditions(), further...)...)
	has.Conditions = condition.MergeConditions(has.Conditions, ours, rule.Generation, metav1.Now())
	status := setup.StatusUpdate{
		Kind: kinds.ImpliedRoles(), Object: rule.Change, Fields: fields, Unchanged: equality.Semantic.DeepEqual(fields, has),
		Outcome: eventv1.Outcome_OUTCOME_APPLIED, Events: newFaultEvents(has.Conditions, fields.Conditions),
	}
	switch {
	case !s.Accepted.IsTrue():
		status.Outcome, status.Message = eventv1.Outcome_OUTCOME_REJECTED, s.Accepted.Message
	case !s.Synced.IsTrue():
		status.Outcome, status.Message = eventv1.Outcome_OUTCOME_PENDING, s.Synced.Message
	}
	return status
}

// newFaultEvents returns an Event for each fault that is new in a status and that the author of the rule must correct. A cycle
// that becomes another cycle is not new.
func newFaultEvents(before, after []metav1.Condition) (notes []condition.EventContent) {
	for _, c := range after {
		was := meta.FindStatusCondition(before, c.Type)
		if (was == nil || was.Reason != c.Reason) && slices.Contains([]string{infer.InCycle, infer.ProhibitedRole, infer.TooManyBindings}, c.Reason) &&
			c.Type != rolev1alpha1.Ready { // Ready repeats another condition.
			notes = append(notes, condition.EventContent{Warning: true, Reason: c.Reason, Message: c.Message})
		}
	}
	return notes
}

// maxWarnings bounds the Events of one pass. Many obstructive bindings must not delay the rest. Statuses report the
// others.
const maxWarnings = 50

// warnAboutMisleadingBindings writes Events about misleading bindings. Such bindings occupy a name of a generated binding, carry the label of
// generated bindings, or have a reserved name without a source.
func (r *statusReconciler) warnAboutMisleadingBindings(ctx context.Context, namespace, source string, taken []string, left *int) {
	for _, name := range taken {
		r.writeBindingWarning(ctx, r.state.BindingKey(namespace, name), left, condition.EventContent{
			Warning: true, Reason: infer.NameConflict,
			Message: fmt.Sprintf("it has the name of a RoleBinding that follows from %s: delete or rename it", source),
		})
	}
	b, note := r.state.Binding(namespace, source), condition.EventContent{Warning: true}
	switch {
	case b == nil:
	case b.Labelled && !b.IsGenerated():
		note.Reason, note.Message = "ForeignLabel", fmt.Sprintf(
			"it has the label %s, but implied-role did not generate it; it stays unchanged, and rules apply to it as to any RoleBinding", infer.ManagedByLabel)
	case b.IsGenerated() && b.Source == "":
		note.Reason, note.Message = "ReservedName", fmt.Sprintf(
			"its name is reserved for generated RoleBindings, and no rule requires it, so implied-role removes its subjects: "+
				"choose another name, or set the label %s=true before you add subjects", infer.IndependentLabel)
	}
	uid := ""
	if note.Reason != "" {
		uid = string(b.UID)
	}
	if r.memory.ensureNamespaceHistory(namespace).recordFalselyGeneratedBinding(source, uid) {
		r.writeBindingWarning(ctx, r.state.BindingKey(namespace, source), left, note)
	}
}

func (r *statusReconciler) writeBindingWarning(ctx context.Context, key event.Key, left *int, note condition.EventContent) {
	b, live := r.state.Bindings.Get(key)
	if *left--; !live || *left < 0 {
		return
	}
	r.log.WarnContext(ctx, "another RoleBinding has the reserved name", slog.String("object", key.String()), slog.String("reason", note.Reason))
	r.writer.RecordEvents(ctx, b.Change, note)
}

// reportSourceResult reports the result for a source that rules concern.
func (r *statusReconciler) reportSourceResult(p *controller.Request[Key], ruleSet *infer.RuleSet, source string,
	obstacles []infer.BindingObstacle, writes int,
) {
	b, live := r.state.Bindings.GetOrTombstone(r.state.BindingKey(p.Key.Namespace, source))
	if !live || writes == 0 && len(ruleSet.DirectlyImpliedRoles(b.Value.Role)) == 0 {
		return
	}
	reportWithObstacles(p, b.Change, obstacles)
}

// reportDeletedObject reports the result for a deleted object.
func (r *statusReconciler) reportDeletedObject(p *controller.Request[Key], key event.Key, obstacles []infer.BindingObstacle) {
	if b, gone := r.state.Bindings.Tombstone(key); gone {
		reportWithObstacles(p, b.Change, obstacles)
	} else if rule, gone := r.state.Rules.Tombstone(key); gone {
		reportWithObstacles(p, rule.Change, obstacles)
	}
}

func reportWithObstacles(p *controller.Request[Key], c event.Change, obstacles []infer.BindingObstacle) {
	if len(obstacles) > 0 {
		p.Report(c, eventv1.Outcome_OUTCOME_PENDING, obstacles[0].Message)
		return
	}
	p.Report(c, eventv1.Outcome_OUTCOME_APPLIED, "")
}

// innermostErrorText returns the innermost text of an error, without the operations that wrap it.
func innermostErrorText(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return truncate.Text(err.Error(), maxCause)
		}
		err = inner
	}
}
