package explain

import "github.com/entail-dev/entail/services/policy"

// Tree is an action on a type and the ways to it. Any one of them is enough.
type Tree struct {
	Type   string `json:"type"`
	Action string `json:"action"`
	// On is the union by which the action is bound to the type, if it is bound by one.
	On string `json:"on,omitempty"`
	// Ending says why the ways, or some of them, are not shown here.
	Ending Ending `json:"ending,omitempty"`
	// Bound is where the action is bound to the type.
	Bound Origin `json:"bound,omitzero"`
	// NeverGranted says that none of the ways begins with a role binding: nobody can have the action.
	NeverGranted bool `json:"neverGranted,omitempty"`
	// Role is the way by role bindings of the resource itself.
	Role *Role `json:"role,omitempty"`
	// Steps are the ways over other resources.
	Steps []Step `json:"steps,omitempty"`
}

// Ending says why a tree does not show all ways.
type Ending string

// Endings.
const (
	// Recursion ends a tree that would contain itself: the same again, on a resource further away.
	Recursion Ending = "recursion"
	// Above ends a tree that stands in full elsewhere.
	Above Ending = "above"
	// Cut ends a tree that is too large or too deep to read.
	Cut Ending = "cut"
)

// Role is the way by role bindings.
type Role struct {
	// Relation holds the role bindings.
	Relation string `json:"relation"`
	// Holder is what it refers to: those who have a role.
	Holder string `json:"holder"`
}

// Step is the way over the resources that a relation leads to.
type Step struct {
	Relation string `json:"relation"`
	Action   string `json:"action"`
	// Declared is where the type's relation is declared. The step itself stands in the binding.
	Declared Origin `json:"declared"`
	// Targets has a tree for each type that the relation leads to.
	Targets []*Tree `json:"targets,omitempty"`
	// More is how many targets are not shown because there are too many.
	More int `json:"more,omitempty"`
}

// Origin is where something is written, and who provides it.
type Origin struct {
	policy.Place

	Owner string `json:"owner,omitempty"`
}

// String is the place, and the owner if there is one.
func (o Origin) String() string {
	if o.Owner == "" {
		return o.Place.String()
	}
	return o.Place.String() + ", " + o.Owner
}

func origin(s *policy.Source, at policy.Position) Origin {
	if s == nil {
		return Origin{}
	}
	return Origin{Place: s.At(at), Owner: s.Owner}
}
