package diff

import (
	"cmp"
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

// ChangeClass is the effect of a change on users and stored data.
type ChangeClass string

// Classes of changes, the worst first.
const (
	// BreakingForData changes orphan stored relationships; access that depends on them is lost, too.
	BreakingForData ChangeClass = "breaking-for-data"
	// BreakingForIDs changes make the IDs of a type unrecognizable.
	BreakingForIDs ChangeClass = "breaking-for-ids"
	// Widening changes may give a user more access.
	Widening ChangeClass = "widening"
	// Narrowing changes may take access from a user.
	Narrowing ChangeClass = "narrowing"
	// Harmless changes alter no decision about existing resources.
	Harmless ChangeClass = "harmless"
	// None is the class of no change.
	None ChangeClass = ""
)

// AllClasses returns all classes of changes, the worst first.
func AllClasses() []ChangeClass {
	return []ChangeClass{BreakingForData, BreakingForIDs, Widening, Narrowing, Harmless}
}

// IsWorseThan reports whether c is worse than o.
func (c ChangeClass) IsWorseThan(o ChangeClass) bool { return c.severityRank() < o.severityRank() }

func (c ChangeClass) severityRank() int {
	if i := slices.Index(AllClasses(), c); i >= 0 {
		return i
	}
	return len(AllClasses())
}

// ChangedPart is the part of a policy that changed.
type ChangedPart string

// Parts of a policy.
const (
	Type      ChangedPart = "type"
	IDPrefix  ChangedPart = "idPrefix"
	Relation  ChangedPart = "relation"
	Target    ChangedPart = "target"
	Union     ChangedPart = "union"
	Action    ChangedPart = "action"
	Binding   ChangedPart = "binding"
	Condition ChangedPart = "condition"
)

// PolicyChange is one difference between two policies.
type PolicyChange struct {
	Class ChangeClass `json:"class"`
	What  ChangedPart `json:"what"`
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

// WorstClass returns the worst class among changes, or None if there are no changes.
func WorstClass(changes []PolicyChange) ChangeClass {
	worst := None
	for _, c := range changes {
		if c.Class.IsWorseThan(worst) {
			worst = c.Class
		}
	}
	return worst
}

func (c PolicyChange) compare(o PolicyChange) int {
	return cmp.Or(
		cmp.Compare(c.Class.severityRank(), o.Class.severityRank()),
		cmp.Compare(c.Type, o.Type), cmp.Compare(c.What, o.What), cmp.Compare(c.Name, o.Name), cmp.Compare(c.Message, o.Message),
	)
}
