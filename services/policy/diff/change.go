package diff

import (
	"cmp"
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

// Class is what a change does to those who live with the policy.
type Class string

// Classes, the worst first.
const (
	// BreakingForData changes orphan stored relationships; access that rests on them is lost too.
	BreakingForData Class = "breaking-for-data"
	// BreakingForIDs changes make ids of a type unrecognisable.
	BreakingForIDs Class = "breaking-for-ids"
	// Widening changes may give somebody more.
	Widening Class = "widening"
	// Narrowing changes may take something from somebody.
	Narrowing Class = "narrowing"
	// Harmless changes alter no decision about anything that exists.
	Harmless Class = "harmless"
	// None is the class of no change at all.
	None Class = ""
)

// Classes returns all classes of changes, the worst first.
func Classes() []Class {
	return []Class{BreakingForData, BreakingForIDs, Widening, Narrowing, Harmless}
}

// Worse reports whether c is worse than o.
func (c Class) Worse(o Class) bool { return c.rank() < o.rank() }

func (c Class) rank() int {
	if i := slices.Index(Classes(), c); i >= 0 {
		return i
	}
	return len(Classes())
}

// What is the part of a policy that changed.
type What string

// Parts of a policy.
const (
	Type      What = "type"
	IDPrefix  What = "idPrefix"
	Relation  What = "relation"
	Target    What = "target"
	Union     What = "union"
	Action    What = "action"
	Binding   What = "binding"
	Condition What = "condition"
)

// Change is one difference between two policies.
type Change struct {
	Class Class `json:"class"`
	What  What  `json:"what"`
	// Type is the type that it is about; unions and actions have none.
	Type string `json:"type,omitempty"`
	// Name is the part: a relation, "relation: target", an action, "action: condition", a union, a type.
	Name string `json:"name"`
	// Message says what the change means.
	Message string `json:"message"`
	// Old and New are the places of the part. What was added has no old one; what is gone, no new one.
	Old policy.Place `json:"old,omitzero"`
	New policy.Place `json:"new,omitzero"`
}

// Worst returns the worst class among changes: None if there are no changes.
func Worst(changes []Change) Class {
	worst := None
	for _, c := range changes {
		if c.Class.Worse(worst) {
			worst = c.Class
		}
	}
	return worst
}

func (c Change) compare(o Change) int {
	return cmp.Or(
		cmp.Compare(c.Class.rank(), o.Class.rank()),
		cmp.Compare(c.Type, o.Type), cmp.Compare(c.What, o.What), cmp.Compare(c.Name, o.Name), cmp.Compare(c.Message, o.Message),
	)
}
