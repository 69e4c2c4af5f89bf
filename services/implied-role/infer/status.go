package infer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
)

// Further reasons of conditions.
const (
	NoCycle         = "NoCycle"
	InCycle         = "InCycle"
	RoleFound       = "RoleFound"
	RoleMissing     = "RoleMissing"
	Synced          = "Synced"
	NotAccepted     = "NotAccepted"
	TooManyBindings = "TooManyBindings"
	Forbidden       = "Forbidden"
	NameConflict    = "NameConflict"
	Pending         = "Pending"
)

// RuleStatus holds the status of a rule.
type RuleStatus struct {
	// Parent is the parent role of the rule. Children lists the roles that all rules together imply for it.
	Parent   Role
	Children []Role

	Accepted, Acyclic, ChildRoleFound, Synced condition.Condition
}

// Conditions returns the conditions of the rule. Ready repeats Accepted if the rule is not accepted, and else Synced.
func (s RuleStatus) Conditions() []condition.Condition {
	ready := s.Synced
	if !s.Accepted.IsTrue() {
		ready = s.Accepted
	}
	ready.Type = rolev1alpha1.Ready
	return []condition.Condition{s.Accepted, s.Acyclic, s.ChildRoleFound, s.Synced, ready}
}

// BindingObstacle is the reason for which a binding that follows from a rule is not as it must be.
type BindingObstacle struct {
	Name string
	// Parent is the role of the source. It is empty if the binding must be removed.
	Parent, Child Role
	// Reason is Forbidden, NameConflict, Pending or TooManyBindings. Callers leave TooManyBindings out of
	// [StatusInput], because each paused rule reports it itself.
	Reason, Message string
}

// StatusInput holds the facts besides the rules on which statuses depend.
type StatusInput struct {
	// Exists reports whether a role exists.
	Exists    func(Role) bool
	Obstacles []BindingObstacle
}

// StatusWithChildren returns the status of one rule of [RuleSet.Rules].
func (rs *RuleSet) StatusWithChildren(r EvaluatedRule, in StatusInput) RuleStatus {
	s := rs.ComputeStatus(r, in)
	s.Children = rs.ImpliedRoles(r.Parent)
	return s
}

// ComputeStatus returns the status of a rule without Children, which all rules with the same parent share.
func (rs *RuleSet) ComputeStatus(r EvaluatedRule, in StatusInput) RuleStatus {
	s := RuleStatus{
		Parent:         r.Parent,
		Accepted:       condition.New(rolev1alpha1.Accepted, r.Reason == Accepted, r.Reason, r.Message),
		Acyclic:        condition.New(rolev1alpha1.Acyclic, true, NoCycle, ""),
		ChildRoleFound: condition.New(rolev1alpha1.ChildRoleFound, true, RoleFound, ""),
		Synced:         rs.ruleSyncedCondition(r, in.Obstacles),
	}
	if r.Reason == Accepted && rs.graph.IsCycleEdge(r.Parent, r.Child) {
		circle := append([]Role{r.Parent}, rs.graph.ShortestPath(r.Child, r.Parent)...)
		s.Acyclic = condition.New(rolev1alpha1.Acyclic, false, InCycle,
			fmt.Sprintf("these roles imply each other: %s; remove one of the rules", pathText(circle)))
	}
	if r.Flaw == nil && !in.Exists(r.Child) {
		s.ChildRoleFound = condition.New(rolev1alpha1.ChildRoleFound, false, RoleMissing,
			fmt.Sprintf("%s %s does not exist; bindings to it grant nothing until you create it",
				r.Child.Kind(), r.Child.Name))
	}
	return s
}

func (rs *RuleSet) ruleSyncedCondition(r EvaluatedRule, obstacles []BindingObstacle) condition.Condition {
	if r.Reason != Accepted {
		return condition.New(rolev1alpha1.Synced, false, NotAccepted, "the rule is not in force; see the condition Accepted")
	}
	if n, ok := rs.paused[r.Name]; ok {
		return condition.New(rolev1alpha1.Synced, false, TooManyBindings, fmt.Sprintf("the rule asks for about %d RoleBindings, more than %d: none are added; "+
			"bind groups instead of single subjects, or ask the administrator", n, rs.limit))
	}
	worst := BindingObstacle{}
	for _, o := range obstacles {
		if (o.Parent == r.Parent || o.Parent == Role{} || rs.graph.CanReach(o.Parent, r.Parent)) &&
			(o.Child == r.Child || rs.graph.CanReach(r.Child, o.Child)) &&
			(worst.Reason == "" || o.Compare(worst) < 0) {
			worst = o
		}
	}
	if worst.Reason != "" {
		return condition.New(rolev1alpha1.Synced, false, worst.Reason, worst.Message)
	}
	return condition.New(rolev1alpha1.Synced, true, Synced, "")
}

// Compare orders obstacles by their importance for the user.
func (o BindingObstacle) Compare(other BindingObstacle) int {
	order := []string{Forbidden, NameConflict, Pending}
	return cmp.Or(cmp.Compare(slices.Index(order, o.Reason), slices.Index(order, other.Reason)), strings.Compare(o.Message, other.Message),
		o.Parent.Compare(other.Parent), o.Child.Compare(other.Child))
}
