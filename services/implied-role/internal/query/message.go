package query

import (
	"cmp"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
)

func roleFromMessage(m *inferencev1.Role) infer.Role {
	return infer.Role{Name: m.GetName(), Cluster: m.GetKind() == infer.KindClusterRole}
}

func toRoleMessage(r infer.Role) *inferencev1.Role {
	return &inferencev1.Role{Kind: r.Kind(), Name: r.Name}
}

// toRoleMessages returns as many roles as fit in a row.
func toRoleMessages(roles []infer.Role) []*inferencev1.Role {
	return toMessagesThatFit(roles, maxPart, toRoleMessage)
}

// subjectFromMessage returns the subject in the form that RoleBindings use.
func subjectFromMessage(m *inferencev1.Subject, namespace string) rbacv1.Subject {
	if m.GetKind() == rbacv1.ServiceAccountKind {
		return rbacv1.Subject{Kind: m.GetKind(), Namespace: cmp.Or(m.GetNamespace(), namespace), Name: m.GetName()}
	}
	return rbacv1.Subject{Kind: m.GetKind(), APIGroup: cmp.Or(m.GetApiGroup(), rbacv1.GroupName), Name: m.GetName()}
}

func toSubjectMessage(s rbacv1.Subject) *inferencev1.Subject {
	return &inferencev1.Subject{Kind: s.Kind, ApiGroup: s.APIGroup, Name: s.Name, Namespace: s.Namespace}
}

// toSubjectMessages returns as many subjects as fit in a row.
func toSubjectMessages(subjects []rbacv1.Subject) []*inferencev1.Subject {
	return toMessagesThatFit(subjects, maxPart, toSubjectMessage)
}

func toInferenceMessage(namespace string, parent infer.Role, ruleSet *infer.RuleSet) *inferencev1.Inference {
	direct, all, rules := ruleSet.DirectlyImpliedRoles(parent), ruleSet.ImpliedRoles(parent), ruleSet.RulesWithParent(parent)
	m := &inferencev1.Inference{
		Namespace: namespace, Parent: toRoleMessage(parent), Direct: toRoleMessages(direct),
		ChildRoles: toRoleMessages(all), ChildRolesTotal: int64(len(all)), Rules: namesThatFit(rules),
	}
	m.Truncated = len(m.GetDirect())+len(m.GetChildRoles())+len(m.GetRules()) < len(direct)+len(all)+len(rules)
	return m
}

func toRuleMessage(ruleSet *infer.RuleSet, r infer.EvaluatedRule, object state.Rule) *inferencev1.Rule {
	m := &inferencev1.Rule{
		Namespace: object.Key.Namespace, Name: r.Name, Uid: object.UID, Generation: object.Generation,
		Parent: toRoleMessage(r.Parent), Child: toRoleMessage(r.Child),
		Accepted: r.Reason == infer.Accepted, InCycle: r.Reason == infer.Accepted && ruleSet.HasImpliedRole(r.Child, r.Parent),
	}
	synced, known := findSyncedCondition(object)
	m.Synced = known && synced.Status == metav1.ConditionTrue
	switch {
	case !m.GetAccepted():
		m.Reason, m.Message = r.Reason, r.Message
	case !known:
		m.Reason, m.Message = infer.Pending, "implied-role has not processed it yet"
	case !m.GetSynced():
		m.Reason, m.Message = synced.Reason, synced.Message
	}
	return m
}

// findSyncedCondition returns the condition Synced of a rule. known reports whether it describes the current generation.
func findSyncedCondition(object state.Rule) (c *metav1.Condition, known bool) {
	c = meta.FindStatusCondition(object.Value.Status.Conditions, rolev1alpha1.Synced)
	return c, c != nil && c.ObservedGeneration == object.Generation
}

func holdingOrigin(h infer.RoleHolding) inferencev1.Origin {
	switch {
	case h.Explicit && h.Implied:
		return inferencev1.Origin_ORIGIN_BOTH
	case h.Explicit:
		return inferencev1.Origin_ORIGIN_EXPLICIT
	}
	return inferencev1.Origin_ORIGIN_IMPLIED
}

// bindingChangeKind maps the verb or the obstacle of a difference to the API.
func bindingChangeKind(c infer.BindingDifference) inferencev1.BindingChange_Change {
	switch {
	case c.Verb == infer.Create:
		return inferencev1.BindingChange_CHANGE_CREATED
	case c.Verb == infer.Update:
		return inferencev1.BindingChange_CHANGE_UPDATED
	case c.Verb == infer.Delete:
		return inferencev1.BindingChange_CHANGE_DELETED
	case c.Verb == infer.Empty:
		return inferencev1.BindingChange_CHANGE_EMPTIED
	case c.Obstacle == infer.NameConflict:
		return inferencev1.BindingChange_CHANGE_CONFLICT
	case c.Obstacle == infer.Pending:
		return inferencev1.BindingChange_CHANGE_WAITING
	}
	return inferencev1.BindingChange_CHANGE_PAUSED
}

func toBindingChangeMessage(c infer.BindingDifference) *inferencev1.BindingChange {
	return &inferencev1.BindingChange{
		Name: c.Name, Source: c.Source, Role: toRoleMessage(c.Role), Change: bindingChangeKind(c),
		Subjects: toSubjectMessages(c.Subjects), SubjectsTotal: int64(len(c.Subjects)),
	}
}

// maxNamed bounds the rules that are named for one step of a path.
const maxNamed = 10

// stepsThatFit returns as many steps of a path as fit in a row, and reports whether some are left out.
func stepsThatFit(path []infer.Role, ruleSet *infer.RuleSet) (list []*inferencev1.Step, more bool) {
	from := make([]int, len(path)-1)
	for i := range from {
		from[i] = i
	}
	list = toMessagesThatFit(from, maxPart, func(i int) *inferencev1.Step {
		rules := ruleSet.RulesBetween(path[i], path[i+1])
		return &inferencev1.Step{
			Rules: rules[:min(maxNamed, len(rules))], RulesTotal: int64(len(rules)), From: toRoleMessage(path[i]), To: toRoleMessage(path[i+1]),
		}
	})
	return list, len(list) < len(from)
}
