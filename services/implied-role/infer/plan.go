package infer

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Input is what there is under the name of one source.
type Input struct {
	Source string
	// Binding has that name; nil if there is none. It need not be a source; it may be one of ours of
	// which nothing tells where it comes from.
	Binding *Binding
	// Generated bindings whose [Binding.Source] is that name.
	Generated []*Binding
	// Occupant finds the binding of a name, whosever it is; nil if there is none.
	Occupant func(name string) *Binding
	// To lists the bindings that people made to a role.
	To func(Role) []*Binding
}

// Plan is what is to be done about the bindings that follow from one source. A desired
// binding that it does not speak of is as it must be.
type Plan struct {
	// Name of the source, Source the binding of that name; nil if there is none.
	Name      string
	Source    *Binding
	Actions   []Action
	Obstacles []Obstacle
}

// Verb is what an action does.
type Verb int

// What is done to generated bindings.
const (
	Create Verb = iota + 1
	Update
	Delete
	// Empty takes away all subjects of what cannot be deleted at once, or may not be.
	Empty
)

// String is for people and logs.
func (v Verb) String() string {
	return map[Verb]string{Create: "create", Update: "update", Delete: "delete", Empty: "empty"}[v]
}

// Action is one write.
type Action struct {
	Verb Verb
	// Name of the generated binding, Source that of its source, Parent the source's role.
	Name, Source string
	Parent       Role
	Child        Role
	// Desired is what must be; nil if there must be nothing.
	Desired *Desired
	// Observed is the binding as it is; nil if it is not there.
	Observed *Binding
	// Subjects that the binding then has.
	Subjects []rbacv1.Subject
}

// Object is the binding that an action creates or makes of what there is.
func (a Action) Object() *rbacv1.RoleBinding {
	b := a.Desired.Object()
	b.Subjects = a.Subjects
	return b
}

// Plan compares what follows from one source with what is there. Of what is desired and being
// deleted it speaks twice when it must be changed before it goes.
func (rs *RuleSet) Plan(in Input) Plan {
	has := make(map[string]*Binding, len(in.Generated))
	for _, g := range in.Generated {
		has[g.Name] = g
	}
	p := Plan{Name: in.Source, Source: in.Binding}
	list := rs.Desired(in.Binding)
	for i := range list {
		d := &list[i]
		observed := has[d.Name]
		delete(has, d.Name)
		if o := in.Occupant(d.Name); observed == nil && o != nil && o.Generated() && o.Role == d.Child {
			observed = o // It does not say so any more.
		}
		obstacle, met := d.obstacle(observed, in.Occupant)
		if met {
			p.Obstacles = append(p.Obstacles, obstacle)
		}
		if observed != nil && !d.is(observed) || observed == nil && !met {
			p.Actions = append(p.Actions, d.action(observed))
		}
	}
	for _, g := range in.Generated {
		if _, left := has[g.Name]; left {
			p.remove(g)
		}
	}
	if b := in.Binding; b != nil && b.Generated() && len(b.Subjects) > 0 && rs.Claimant(b, in.To) == nil {
		p.Actions = append(p.Actions, p.action(Empty, b))
	}
	return p
}

// remove plans that a binding does not grant any more. One that is being deleted and does not is done.
func (p *Plan) remove(g *Binding) {
	switch {
	case !g.Deleting:
		p.Actions = append(p.Actions, p.action(Delete, g))
	case len(g.Subjects) > 0:
		p.Actions = append(p.Actions, p.action(Empty, g))
	}
}

func (p *Plan) action(v Verb, g *Binding) Action {
	return Action{Verb: v, Name: g.Name, Source: p.Name, Child: g.Role, Observed: g}
}

// Claimant is the source that a binding of ours follows from, whatever that says of itself; nil if
// there is none. To lists the bindings that people made to a role.
func (rs *RuleSet) Claimant(b *Binding, to func(Role) []*Binding) *Binding {
	for _, parent := range rs.Implying(b.Role) {
		for _, source := range to(parent) {
			if source.IsSource() && Name(source.Name, b.Role) == b.Name {
				return source
			}
		}
	}
	return nil
}

func (d *Desired) action(observed *Binding) Action {
	desired := *d // Not a part of its list, which may be long and would be kept.
	a := Action{
		Verb: Create, Name: d.Name, Source: d.Source.Name, Parent: d.Source.Role, Child: d.Child,
		Desired: &desired, Observed: observed, Subjects: d.Source.Subjects,
	}
	if observed != nil {
		a.Verb = Update
	}
	return a
}

// obstacle is why nothing can be done about a binding now, whatever it is like.
func (d *Desired) obstacle(observed *Binding, occupant func(string) *Binding) (o Obstacle, met bool) {
	if observed != nil && !observed.Deleting {
		return o, false
	}
	o = Obstacle{Name: d.Name, Parent: d.Source.Role, Child: d.Child}
	switch {
	case observed != nil:
		o.Reason, o.Message = Pending, fmt.Sprintf("RoleBinding %s is being deleted; it is made again when it has gone", d.Name)
	case occupant(d.Name) != nil:
		o.Reason, o.Message = NameConflict, fmt.Sprintf(
			"RoleBinding %s is not one that follows from %s, but has its name: delete or rename it", d.Name, d.Source.Name)
	case d.Paused:
		o.Reason, o.Message = TooManyBindings, "the rules behind it ask for too many RoleBindings"
	}
	return o, o.Reason != ""
}

// Difference is one generated binding that is not as it must be, with the action or the obstacle that its plan has.
type Difference struct {
	Name, Source string
	Role         Role
	// Verb is 0 if there is an obstacle.
	Verb Verb
	// Obstacle is the reason of one.
	Obstacle string
	// Subjects that the binding then has, or had if it is deleted or emptied.
	Subjects []rbacv1.Subject
}

// Differences lists all that a plan speaks of.
func (p Plan) Differences() []Difference {
	list := make([]Difference, 0, len(p.Actions)+len(p.Obstacles))
	for _, a := range p.Actions {
		c := Difference{Name: a.Name, Source: a.Source, Role: a.Child, Verb: a.Verb, Subjects: a.Subjects}
		if a.Verb == Delete || a.Verb == Empty {
			c.Subjects = a.Observed.Subjects
		}
		list = append(list, c)
	}
	for _, o := range p.Obstacles {
		if o.Reason == Pending && slices.ContainsFunc(p.Actions, func(a Action) bool { return a.Name == o.Name }) {
			continue // It is made as it must be, and goes then.
		}
		list = append(list, Difference{Name: o.Name, Source: p.Name, Role: o.Child, Obstacle: o.Reason, Subjects: p.Source.Subjects})
	}
	return list
}
