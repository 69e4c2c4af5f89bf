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
	Sources []*Source
	// Ungranted holds the actions that no subject can ever have: no path to them has a role binding.
	Ungranted []Grant
}

// Type is a type of resource with its relations and bindings.
type Type struct {
	Name, IDPrefix string
	// Relations is sorted by name.
	Relations []*Relation
	// Bindings is sorted by action. The members of a union share its bindings.
	Bindings []*Binding
	// Source is nil for a type that no document declares.
	Source *Source
	At     Position
}

// Synthesised reports whether the type is a type of roles or subjects that no document declares.
func (t *Type) Synthesised() bool { return t.Source == nil }

// Relation is a relation from the resources of a type to others.
type Relation struct {
	Name string
	// Targets is sorted by name, without duplicates. Relations to the same union share the list.
	Targets []*Type
	// References holds the targets as the document names them: types and unions.
	References []Reference
	Source     *Source
	At         Position
}

// Reference is the name of a type or union in a document.
type Reference struct {
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
	Steps  []Step
	Source *Source
	At     Position
}

// Step gives the action to subjects with Action on a target of Relation.
type Step struct {
	Relation, Action string
	At               Position
}

// Union is a name for several types.
type Union struct {
	Name string
	// Members is sorted by name.
	Members []*Type
	Source  *Source
	At      Position
}

// Action is a declared action.
type Action struct {
	Name   string
	Source *Source
	At     Position
}

// Grant is an action on a type, by its binding.
type Grant struct {
	Type    *Type
	Binding *Binding
}

// Type returns the type of that name, or nil.
func (p *Policy) Type(name string) *Type {
	return find(p.Types, name, func(t *Type) string { return t.Name })
}

// Union returns the union of that name, or nil.
func (p *Policy) Union(name string) *Union {
	return find(p.Unions, name, func(u *Union) string { return u.Name })
}

// Bound returns the actions that some type has, and those that a role binding can give on some type.
func (p *Policy) Bound() (actions, byRole map[string]bool) {
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

// Relation returns the relation of that name, or nil.
func (t *Type) Relation(name string) *Relation {
	return find(t.Relations, name, func(r *Relation) string { return r.Name })
}

// Binding returns the binding of the action on the type, or nil.
func (t *Type) Binding(action string) *Binding {
	return find(t.Bindings, action, func(b *Binding) string { return b.Action })
}

func find[T any](sorted []*T, name string, nameOf func(*T) string) *T {
	i, found := slices.BinarySearchFunc(sorted, name, func(item *T, name string) int { return cmp.Compare(nameOf(item), name) })
	if !found {
		return nil
	}
	return sorted[i]
}

// Compare orders steps by relation and action.
func (s Step) Compare(o Step) int {
	return cmp.Or(cmp.Compare(s.Relation, o.Relation), cmp.Compare(s.Action, o.Action))
}
