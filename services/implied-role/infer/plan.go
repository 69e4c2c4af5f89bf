package infer

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// Verb says what becomes of a generated binding.
type Verb int

// Create, Update and Delete are done to the cluster. Conflict, Hold and Wait only say why
// nothing is: another object has the name; the rules behind it are paused; it is being
// deleted, and will be made again when it has gone.
const (
	Create Verb = iota + 1
	Update
	Delete
	Conflict
	Hold
	Wait
)

// Step is one thing to be done, or why it is not.
type Step struct {
	Verb
	// Name of the generated binding, Source that of its source, Parent the source's role.
	Name, Source string
	Parent       Role
	Child        Role
	// Want is what must be; nil if there must be nothing.
	Want *Wanted
	// Is the binding as it is; nil if it is not there.
	Is *Binding
	// Subjects that the binding then has.
	Subjects []rbacv1.Subject
}

// Object is the binding that a step creates or makes of what there is.
func (s Step) Object() *rbacv1.RoleBinding {
	b := s.Want.Object()
	b.Subjects = s.Subjects
	return b
}

// Stock is what there is under the name of one source.
type Stock struct {
	Source string
	// Binding has that name; nil if there is none. It need not be a source.
	Binding *Binding
	// Generated bindings whose [Owner] has that name.
	Generated []*Binding
	// Holder finds the binding of a name, whosever it is; nil if there is none.
	Holder func(name string) *Binding
}

// Wanted lists the bindings that follow from one, in the order of the roles they grant.
func (b *Rulebook) Wanted(source *Binding) []Wanted {
	if source == nil || !source.IsSource() {
		return nil
	}
	parent := source.Role
	offers := b.offers(parent)
	if len(offers) == 0 {
		return nil
	}
	list, origin := make([]Wanted, len(offers)), hash(source.Name)
	for i, o := range offers {
		list[i] = Wanted{
			Name: Name(source.Name, o.Child), Source: source, offer: o, origin: origin,
			Held: b.free != b.graph && !b.free.Reaches(parent, o.Child),
		}
	}
	return list
}

// Plan lists what is to be done so that what is there is what follows from one source. If
// it is, there is nothing to be done.
func (b *Rulebook) Plan(s Stock) []Step {
	has := make(map[string]*Binding, len(s.Generated))
	for _, g := range s.Generated {
		has[g.Name] = g
	}
	var steps []Step
	list := b.Wanted(s.Binding)
	for i := range list {
		w := &list[i]
		is := has[w.Name]
		delete(has, w.Name)
		if verb := w.verb(is, s.Holder); verb != 0 {
			want := *w // Not a part of the list, which may be long and would be kept.
			step := Step{
				Verb: verb, Name: w.Name, Source: s.Source, Parent: s.Binding.Role, Child: w.Child,
				Want: &want, Is: is, Subjects: s.Binding.Subjects,
			}
			if verb == Conflict {
				step.Is = s.Holder(w.Name)
			}
			steps = append(steps, step)
		}
	}
	for _, g := range s.Generated {
		if _, left := has[g.Name]; left && !g.Deleting {
			steps = append(steps, Step{Verb: Delete, Name: g.Name, Source: s.Source, Child: g.Role, Is: g})
		}
	}
	return steps
}

func (w Wanted) verb(is *Binding, holder func(string) *Binding) Verb {
	switch {
	case is != nil && is.Deleting:
		return Wait
	case is != nil && w.is(is):
		return 0
	case is != nil:
		return Update
	case holder(w.Name) != nil:
		return Conflict
	case w.Held:
		return Hold
	}
	return Create
}

// Changes reports whether v is done to the cluster.
func (v Verb) Changes() bool { return v == Create || v == Update || v == Delete }

// String is for people and logs.
func (v Verb) String() string {
	return map[Verb]string{
		Create: "create", Update: "update", Delete: "delete", Conflict: "conflict", Hold: "hold", Wait: "wait",
	}[v]
}
