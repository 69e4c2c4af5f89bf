package explain

import "github.com/entail-dev/entail/services/policy"

// ActionTree is an action on a type, with the ways to get it. Each way is sufficient.
type ActionTree struct {
	Type   string `json:"type"`
	Action string `json:"action"`
	// On is the union that the binding names; it is empty if the binding names the type itself.
	On string `json:"on,omitempty"`
	// Ending is the reason why some ways are not shown; it is empty if all are.
	Ending TreeEnding `json:"ending,omitempty"`
	// Bound is the place of the binding.
	Bound DeclarationOrigin `json:"bound,omitzero"`
	// NeverGranted is true if no way begins with a role binding, so no subject can have the action.
	NeverGranted bool `json:"neverGranted,omitempty"`
	// Role is the way through role bindings on the resource itself; it is nil if there is none.
	Role *RoleBindingWay `json:"role,omitempty"`
	// Steps holds the ways through other resources.
	Steps []RelationWay `json:"steps,omitempty"`
}

// TreeEnding is the reason why a tree does not show all ways.
type TreeEnding string

// Endings.
const (
	// Recursion ends a tree that would contain itself, for a resource further away.
	Recursion TreeEnding = "recursion"
	// Above ends a tree that is shown completely elsewhere.
	Above TreeEnding = "above"
	// Cut ends a tree that is too large or too deep to read.
	Cut TreeEnding = "cut"
)

// RoleBindingWay is the way through role bindings.
type RoleBindingWay struct {
	// Relation holds the role bindings.
	Relation string `json:"relation"`
	// Holder is the userset that a role binding refers to: the subjects of a role.
	Holder string `json:"holder"`
}

// RelationWay is the way through the targets of a relation.
type RelationWay struct {
	Relation string `json:"relation"`
	Action   string `json:"action"`
	// Declared is the place where the type declares the relation. The binding contains the step itself.
	Declared DeclarationOrigin `json:"declared"`
	// Targets holds a tree for each target type of the relation.
	Targets []*ActionTree `json:"targets,omitempty"`
	// More counts the targets that are not shown because there are too many.
	More int `json:"more,omitempty"`
}

// DeclarationOrigin is the place of a declaration, with the owner of its document.
type DeclarationOrigin struct {
	policy.Place

	Owner string `json:"owner,omitempty"`
}

// String returns the place, and the owner if it is known.
func (o DeclarationOrigin) String() string {
	if o.Owner == "" {
		return o.Place.String()
	}
	return o.Place.String() + ", " + o.Owner
}

func newOrigin(s *policy.DocumentSource, at policy.Position) DeclarationOrigin {
	if s == nil {
		return DeclarationOrigin{}
	}
	return DeclarationOrigin{Place: s.PlaceAt(at), Owner: s.Owner}
}
