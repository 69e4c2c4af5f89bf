package infer

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Input is what there is under the name of one source.
type Input struct {
	Source string
	// Binding has that name; nil if there is none. It need not be a source.
	Binding *Binding
	// Generated bindings whose [Binding.Source] is that name.
	Generated []*Binding
	// Occupant finds the binding of a name, whosever it is; nil if there is none.
	Occupant func(name string) *Binding
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
)

// String is for people and logs.
func (v Verb) String() string {
	return map[Verb]string{Create: "create", Update: "update", Delete: "delete"}[v]
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

// Plan compares what follows from one source with what is there.
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
		if obstacle, met := d.obstacle(observed, in.Occupant); met {
			p.Obstacles = append(p.Obstacles, obstacle)
		} else if observed == nil || !d.is(observed) {
			p.Actions = append(p.Actions, d.action(observed))
		}
	}
	for _, g := range in.Generated {
		if _, left := has[g.Name]; left && !g.Deleting {
			p.Actions = append(p.Actions, Action{Verb: Delete, Name: g.Name, Source: in.Source, Child: g.Role, Observed: g})
		}
	}
	return p
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
			"RoleBinding %s is not one of ours, but has the name of one that follows from %s: delete or rename it", d.Name, d.Source.Name)
	case d.Paused:
		o.Reason, o.Message = TooManyBindings, "the rules behind it ask for too many RoleBindings"
	}
	return o, o.Reason != ""
}

// BindingChange is what becomes of one generated binding, or why nothing does.
type BindingChange struct {
	Name, Source string
	Role         Role
	// Verb is 0 if there is an obstacle.
	Verb Verb
	// Obstacle is the reason of one.
	Obstacle string
	// Subjects that the binding then has, or had if it is deleted.
	Subjects []rbacv1.Subject
}

// Changes lists all that a plan speaks of.
func (p Plan) Changes() []BindingChange {
	list := make([]BindingChange, 0, len(p.Actions)+len(p.Obstacles))
	for _, a := range p.Actions {
		c := BindingChange{Name: a.Name, Source: a.Source, Role: a.Child, Verb: a.Verb, Subjects: a.Subjects}
		if a.Verb == Delete {
			c.Subjects = a.Observed.Subjects
		}
		list = append(list, c)
	}
	for _, o := range p.Obstacles {
		list = append(list, BindingChange{Name: o.Name, Source: p.Name, Role: o.Child, Obstacle: o.Reason, Subjects: p.Source.Subjects})
	}
	return list
}
