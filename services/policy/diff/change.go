package diff

import (
	"cmp"
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

// Class is the effect of a change on users and stored data.
type Class string

// Classes of changes, the worst first.
const (
	// BreakingForData changes orphan stored relationships; access that depends on them is lost, too.
	BreakingForData Class = "breaking-for-data"
	// BreakingForIDs changes make the IDs of a type unrecognizable.
	BreakingForIDs Class = "breaking-for-ids"
	// Widening changes may give a user more access.
	Widening Class = "widening"
	// Narrowing changes may take access from a user.
	Narrowing Class = "narrowing"
	// Harmless changes alter no decision about existing resources.
	Harmless Class = "harmless"
	// None is the class of no change.
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
	// Type is the type that changed; it is empty for unions and actions.
	Type string `json:"type,omitempty"`
	// Name names the part: a relation, "relation: target", an action, "action: condition", a union, or a type.
	Name string `json:"name"`
	// Message describes the effect of the change.
	Message string `json:"message"`
	// Old and New are the places of the part. An added part has no old place, a removed part no new one.
	Old policy.Place `json:"old,omitzero"`
	New policy.Place `json:"new,omitzero"`
}

// Worst returns the worst class among changes, or None if there are no changes.
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
