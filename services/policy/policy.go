package policy

import (
	"cmp"
	"slices"
)

// Policy is what all documents mean together: valid, expanded and sorted by name.
// It is made by check and never changed.
type Policy struct {
	// Options have their defaults filled in.
	Options Options
	// Types are those of the documents, and the types of roles and subjects where nobody declares them.
	Types   []*Type
	Unions  []*Union
	Actions []*Action
	Sources []*Source
	// Ungranted are the actions that nobody can ever have: no role binding is on any way to them.
	Ungranted []Grant
}

// Type is a type of resource with all that is bound to it.
type Type struct {
	Name, IDPrefix string
	// Relations are sorted by name.
	Relations []*Relation
	// Bindings are sorted by action. The members of a union share what is bound to it.
	Bindings []*Binding
	// Source is nil for a type that nobody declares.
	Source *Source
	At     Position
}

// Synthesised reports whether the type is one of roles or subjects that no document declares.
func (t *Type) Synthesised() bool { return t.Source == nil }

// Relation leads from a type to others.
type Relation struct {
	Name string
	// Targets are sorted by name, each once. Relations to the same union share them.
	Targets []*Type
	// References are what the document names as targets: types and unions.
	References []Reference
	Source     *Source
	At         Position
}

// Reference is the name of a type or union where a document refers to it.
type Reference struct {
	Name string
	At   Position
}

// Binding says who may take an action, as it was written. It stands in every type that it binds.
type Binding struct {
	Action string
	// On is the type or union that the binding names.
	On string
	// RoleBinding says that a role binding can give the action.
	RoleBinding bool
	// Steps are sorted by relation and action.
	Steps  []Step
	Source *Source
	At     Position
}

// Step allows who may take Action on a resource that Relation leads to.
type Step struct {
	Relation, Action string
	At               Position
}

// Union is a name for several types.
type Union struct {
	Name string
	// Members are sorted by name.
	Members []*Type
	Source  *Source
	At      Position
}

// Action is an action that bindings may name.
type Action struct {
	Name   string
	Source *Source
	At     Position
}

// Grant is an action on a type.
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

// Bound tells which actions some type has, and which of them role bindings grant somewhere.
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

// Binding returns what is bound to the type for the action, or nil.
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
