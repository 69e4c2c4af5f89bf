package infer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rule gives Child to all subjects that have Parent.
type Rule struct {
	Name    string
	Created time.Time
	Parent  Role
	Child   Role
	// Flaw is the reason for which Parent or Child is invalid, or nil.
	Flaw error
}

// Policy holds the settings of the administrator.
type Policy struct {
	// Prohibited lists the roles that no rule may imply. An entry is a name, or a prefix with "*". It matches both
	// kinds unless it starts with "Role/" or "ClusterRole/".
	Prohibited []string
	// Excluded lists the namespaces in which no rule holds.
	Excluded []string
	// Unguarded means that no admission webhook checks the authors of rules and bindings. Then no rule holds.
	Unguarded bool
	// MaxGenerated bounds the RoleBindings that one rule may generate.
	MaxGenerated int
	// MaxRules bounds the rules of a namespace. The oldest ones hold.
	MaxRules int
}

// DefaultPolicy returns the defaults of all settings.
func DefaultPolicy() Policy {
	return Policy{
		Prohibited:   []string{clusterPrefix + "cluster-admin", "system:*"},
		Excluded:     []string{"kube-system", "kube-public", "kube-node-lease"},
		MaxGenerated: 10_000,
		MaxRules:     20_000,
	}
}

// UnsupportedNamespaces lists the namespaces in which no rule ever holds. Webhooks in these namespaces could block the recovery
// of the service that answers them.
func UnsupportedNamespaces() []string { return []string{"entail-system", "kube-system"} }

func (p Policy) isProhibited(r Role) bool {
	return slices.ContainsFunc(p.Prohibited, func(pattern string) bool {
		if kind, name, ok := strings.Cut(pattern, "/"); ok {
			if kind != r.Kind() {
				return false
			}
			pattern = name
		}
		if beginning, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(r.Name, beginning)
		}
		return r.Name == pattern
	})
}

// Reasons for which a rule holds or does not hold.
const (
	Accepted          = "Accepted"
	Incomplete        = "Incomplete"
	SelfImplication   = "SelfImplication"
	ProhibitedRole    = "ProhibitedRole"
	ExcludedNamespace = "ExcludedNamespace"
	Unguarded         = "Unguarded"
	TooManyRules      = "TooManyRules"
)

// EvaluatedRule is a rule with the result of its evaluation.
type EvaluatedRule struct {
	Rule
	// Reason is Accepted, or the reason for which the rule does not hold. Message then states the remedy.
	Reason, Message string
}

func (p Policy) evaluateRule(namespace string, r Rule) EvaluatedRule {
	e := EvaluatedRule{Rule: r, Reason: Accepted}
	switch {
	case slices.Contains(p.Excluded, namespace), slices.Contains(UnsupportedNamespaces(), namespace):
		e.Reason, e.Message = ExcludedNamespace, fmt.Sprintf("no rule is in force in namespace %s; move the rule, or ask the administrator", namespace)
	case p.Unguarded:
		e.Reason = Unguarded
		e.Message = "no rule is in force, because no webhook checks the authors of rules; start implied-role with --admission-service or --admission-url"
	case r.Flaw != nil:
		e.Reason, e.Message = Incomplete, fmt.Sprintf("%s: correct parent_role and child_role", r.Flaw)
	case r.Parent == r.Child:
		e.Reason, e.Message = SelfImplication, "a role cannot imply itself; name another parent or child"
	case p.isProhibited(r.Child):
		e.Reason, e.Message = ProhibitedRole, fmt.Sprintf("no rule may imply %s; bind it directly where it is needed", r.Child)
	}
	return e
}

// FindRefusal reports whether the API server would reject a rule, by its policy or its schema. It also returns the
// evaluation.
func (p Policy) FindRefusal(namespace string, r Rule) (EvaluatedRule, bool) {
	e := p.evaluateRule(namespace, r)
	e.Message = "the API server would refuse it: " + e.Message
	return e, e.Reason == ProhibitedRole || e.Reason == SelfImplication
}

// evaluateRules evaluates the rules and returns them sorted by name. If more than p.MaxRules are accepted, only the
// oldest stay accepted.
func (p Policy) evaluateRules(namespace string, rules []Rule) []EvaluatedRule {
	all := make([]EvaluatedRule, len(rules))
	for i, r := range rules {
		all[i] = p.evaluateRule(namespace, r)
	}
	byName := func(a, b EvaluatedRule) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(all, byName) {
		slices.SortFunc(all, byName)
	}
	if len(all) <= p.MaxRules {
		return all
	}
	var accepted []*EvaluatedRule
	for i := range all {
		if all[i].Reason == Accepted {
			accepted = append(accepted, &all[i])
		}
	}
	slices.SortStableFunc(accepted, func(a, b *EvaluatedRule) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name))
	})
	for _, late := range accepted[min(p.MaxRules, len(accepted)):] {
		late.Reason = TooManyRules
		late.Message = fmt.Sprintf("the namespace has more than %d rules, and only the oldest are in force; remove some, or ask the administrator", p.MaxRules)
	}
	return all
}
