package policy

import (
	"cmp"
	"slices"
)

// Policy is the combined meaning of all documents: valid, expanded and sorted by name. Package check creates it, and it
// never changes after that.
type Policy struct {
	// Options has all defaults filled in.
	Options Options
	// Types holds the declared types, and the types of roles and subjects that no document declares.
	Types   []*Type
	Unions  []*Union
	Actions []*Action
	Sources []*DocumentSource
	// Ungranted holds the actions that no subject can ever have: no path to them has a role binding.
	Ungranted []ActionOnType
}

// Type is a type of resource with its relations and bindings.
type Type struct {
	Name, IDPrefix string
	// Relations is sorted by name.
	Relations []*Relation
	// Bindings is sorted by action. The members of a union share its bindings.
	Bindings []*Binding
	// Source is nil for a type that no document declares.
	Source *DocumentSource
	At     Position
}

// IsSynthesised reports whether the type is a type of roles or subjects that no document declares.
func (t *Type) IsSynthesised() bool { return t.Source == nil }

// Relation is a relation from the resources of a type to others.
type Relation struct {
	Name string
	// Targets is sorted by name, without duplicates. Relations to the same union share the list.
	Targets []*Type
	// References holds the targets as the document names them: types and unions.
	References []TypeReference
	Source     *DocumentSource
	At         Position
}

// TypeReference is the name of a type or union in a document.
type TypeReference struct {
	Name string
	At   Position
}

// Binding defines who may take an action, as written. Each of its types holds it.
type Binding struct {
	Action string
	// On is the type or union that the binding names.
	On string
	// RoleBinding is true if a role binding can give the action.
	RoleBinding bool
	// Steps is sorted by relation and action.
	Steps  []RelationStep
	Source *DocumentSource
	At     Position
}

// RelationStep gives the action to subjects with Action on a target of Relation.
type RelationStep struct {
	Relation, Action string
	At               Position
}

// Union is a name for several types.
type Union struct {
	Name string
	// Members is sorted by name.
	Members []*Type
	Source  *DocumentSource
	At      Position
}

// Action is a declared action.
type Action struct {
	Name   string
	Source *DocumentSource
	At     Position
}

// ActionOnType is an action on a type, by its binding.
type ActionOnType struct {
	Type    *Type
	Binding *Binding
}

// FindType returns the type of that name, or nil.
func (p *Policy) FindType(name string) *Type {
	return findByName(p.Types, name, func(t *Type) string { return t.Name })
}

// FindUnion returns the union of that name, or nil.
func (p *Policy) FindUnion(name string) *Union {
	return findByName(p.Unions, name, func(u *Union) string { return u.Name })
}

// BoundActions returns the actions that some type has, and those that a role binding can give on some type.
func (p *Policy) BoundActions() (actions, byRole map[string]bool) {
	actions, byRole = map[string]bool{}, map[string]bool{}
	for _, t := range p.Types {
		for _, b := range t.Bindings {
			actions[b.Action] = true
			if b.RoleBinding {
				byRole[b.Action] = true
			}
		}
	}
	return actions, byRole
}

// FindRelation returns the relation of that name, or nil.
func (t *Type) FindRelation(name string) *Relation {
	return findByName(t.Relations, name, func(r *Relation) string { return r.Name })
}

// FindBinding returns the binding of the action on the type, or nil.
func (t *Type) FindBinding(action string) *Binding {
	return findByName(t.Bindings, action, func(b *Binding) string { return b.Action })
}

func findByName[T any](sorted []*T, name string, nameOf func(*T) string) *T {
	i, found := slices.BinarySearchFunc(sorted, name, func(item *T, name string) int { return cmp.Compare(nameOf(item), name) })
	if !found {
		return nil
	}
	return sorted[i]
}

// Compare orders steps by relation and action.
func (s RelationStep) Compare(o RelationStep) int {
	return cmp.Or(cmp.Compare(s.Relation, o.Relation), cmp.Compare(s.Action, o.Action))
}
