package infer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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

// Condition is one thing to say about a rule.
type Condition struct {
	OK              bool
	Reason, Message string
}

// Status is what is to be said about a rule.
type Status struct {
	// Parent is the rule's, Children what comes with it by all rules together.
	Parent   Role
	Children []Role

	Accepted, Acyclic, ChildRoleFound, Synced Condition
}

// Trouble is why a binding that follows from a rule is not as it must be.
type Trouble struct {
	// Parent is the role of its source; none if the binding is to go.
	Parent, Child Role
	// Reason is Forbidden, NameConflict or Pending.
	Reason, Message string
}

// Facts are what statuses depend on beside the rules.
type Facts struct {
	// Exists tells whether there is such a role.
	Exists   func(Role) bool
	Troubles []Trouble
}

// Status is what is to be said about one of the rules of [Rulebook.Rules].
func (b *Rulebook) Status(r Judged, f Facts) Status {
	s := b.Standing(r, f)
	s.Children = b.Implied(r.Parent)
	return s
}

// Standing is the status of a rule but for the children, which rules of one parent share.
func (b *Rulebook) Standing(r Judged, f Facts) Status {
	s := Status{
		Parent:         r.Parent,
		Accepted:       Condition{r.Reason == Accepted, r.Reason, r.Message},
		Acyclic:        Condition{true, NoCycle, ""},
		ChildRoleFound: Condition{true, RoleFound, ""},
		Synced:         b.synced(r, f.Troubles),
	}
	if r.Reason == Accepted && b.graph.Cyclic(r.Parent, r.Child) {
		circle := append([]Role{r.Parent}, b.graph.Path(r.Child, r.Parent)...)
		s.Acyclic = Condition{false, InCycle, fmt.Sprintf("all of these imply each other: %s; remove one of the rules between them", via(circle))}
	}
	if r.Flaw == nil && !f.Exists(r.Child) {
		s.ChildRoleFound = Condition{false, RoleMissing, fmt.Sprintf("%s %s does not exist: what is bound to it grants nothing until it does",
			r.Child.Kind(), r.Child.Name)}
	}
	return s
}

func (b *Rulebook) synced(r Judged, troubles []Trouble) Condition {
	if r.Reason != Accepted {
		return Condition{false, NotAccepted, "the rule does not hold; see the condition Accepted"}
	}
	if n, ok := b.paused[r.Name]; ok {
		return Condition{false, TooManyBindings, fmt.Sprintf("the rule asks for about %d RoleBindings, more than %d: none are added; "+
			"bind groups instead of single subjects, or ask the administrator", n, b.limit)}
	}
	worst := Trouble{}
	for _, t := range troubles {
		if (t.Parent == r.Parent || t.Parent == Role{} || b.graph.Reaches(t.Parent, r.Parent)) && (t.Child == r.Child || b.graph.Reaches(r.Child, t.Child)) &&
			(worst.Reason == "" || t.Compare(worst) < 0) {
			worst = t
		}
	}
	if worst.Reason != "" {
		return Condition{false, worst.Reason, worst.Message}
	}
	return Condition{true, Synced, ""}
}

// Compare orders troubles by how much they concern a person.
func (t Trouble) Compare(other Trouble) int {
	order := []string{Forbidden, NameConflict, Pending}
	return cmp.Or(cmp.Compare(slices.Index(order, t.Reason), slices.Index(order, other.Reason)), strings.Compare(t.Message, other.Message),
		t.Parent.Compare(other.Parent), t.Child.Compare(other.Child))
}
