package infer

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// PlanInput holds the observed bindings that belong to one source name.
type PlanInput struct {
	Source string
	// Binding is the binding of that name, or nil. It need not be a source. It may be a generated binding without a
	// traceable source.
	Binding *Binding
	// Generated holds the generated bindings whose [Binding.Source] is that name.
	Generated []*Binding
	// Occupant returns the binding of a name, explicit or generated, or nil.
	Occupant func(name string) *Binding
	// To lists the explicit bindings to a role.
	To func(Role) []*Binding
}

// SourcePlan holds the actions and obstacles for the bindings that follow from one source. A desired binding that it does not
// mention is already as it must be.
type SourcePlan struct {
	// Name is the name of the source. Source is the binding of that name, or nil.
	Name      string
	Source    *Binding
	Actions   []Action
	Obstacles []BindingObstacle
}

// Verb is the kind of an action.
type Verb int

// Verbs of actions on generated bindings.
const (
	Create Verb = iota + 1
	Update
	Delete
	// Empty removes all subjects from a binding that cannot or must not be deleted now.
	Empty
)

// String returns the verb in lower case, for logs and messages.
func (v Verb) String() string {
	return map[Verb]string{Create: "create", Update: "update", Delete: "delete", Empty: "empty"}[v]
}

// Action is one write.
type Action struct {
	Verb Verb
	// Name is the name of the generated binding, Source the name of its source, Parent the role of the source.
	Name, Source string
	Parent       Role
	Child        Role
	// Desired is the binding that must exist, or nil.
	Desired *DesiredBinding
	// Observed is the existing binding, or nil.
	Observed *Binding
	// Subjects that the binding then has.
	Subjects []rbacv1.Subject
}

// ToRoleBinding returns the binding that the action writes.
func (a Action) ToRoleBinding() *rbacv1.RoleBinding {
	b := a.Desired.ToRoleBinding()
	b.Subjects = a.Subjects
	return b
}

// PlanSource compares the bindings that follow from one source with the existing ones. A desired binding that is being
// deleted gets the obstacle Pending. It also gets an action if it must change before it is gone.
func (rs *RuleSet) PlanSource(in PlanInput) SourcePlan {
	has := make(map[string]*Binding, len(in.Generated))
	for _, g := range in.Generated {
		has[g.Name] = g
	}
	p := SourcePlan{Name: in.Source, Source: in.Binding}
	list := rs.DesiredBindings(in.Binding)
	for i := range list {
		d := &list[i]
		observed := has[d.Name]
		delete(has, d.Name)
		if o := in.Occupant(d.Name); observed == nil && o != nil && o.IsGenerated() && o.Role == d.Child {
			observed = o // Its source can no longer be traced.
		}
		obstacle, met := d.findObstacle(observed, in.Occupant)
		if met {
			p.Obstacles = append(p.Obstacles, obstacle)
		}
		if observed != nil && !d.matchesBinding(observed) || observed == nil && !met {
			p.Actions = append(p.Actions, d.newWriteAction(observed))
		}
	}
	for _, g := range in.Generated {
		if _, left := has[g.Name]; left {
			p.addRemovalAction(g)
		}
	}
	if b := in.Binding; b != nil && b.IsGenerated() && len(b.Subjects) > 0 && rs.FindImplyingSource(b, in.To) == nil {
		p.Actions = append(p.Actions, p.newAction(Empty, b))
	}
	return p
}

// addRemovalAction plans the removal of a binding that must not grant its role. A binding that is being deleted and has no
// subjects needs no action.
func (p *SourcePlan) addRemovalAction(g *Binding) {
	switch {
	case !g.Deleting:
		p.Actions = append(p.Actions, p.newAction(Delete, g))
	case len(g.Subjects) > 0:
		p.Actions = append(p.Actions, p.newAction(Empty, g))
	}
}

func (p *SourcePlan) newAction(v Verb, g *Binding) Action {
	return Action{Verb: v, Name: g.Name, Source: p.Name, Child: g.Role, Observed: g}
}

// FindImplyingSource returns the source that implies a generated binding, or nil. It does not read the annotation or
// owner references of b. To lists the explicit bindings to a role.
func (rs *RuleSet) FindImplyingSource(b *Binding, to func(Role) []*Binding) *Binding {
	for _, parent := range rs.ImplyingRoles(b.Role) {
		for _, source := range to(parent) {
			if source.IsSource() && GeneratedName(source.Name, b.Role) == b.Name {
				return source
			}
		}
	}
	return nil
}

func (d *DesiredBinding) newWriteAction(observed *Binding) Action {
	desired := *d // A copy, so that the action does not keep the whole list in memory.
	a := Action{
		Verb: Create, Name: d.Name, Source: d.Source.Name, Parent: d.Source.Role, Child: d.Child,
		Desired: &desired, Observed: observed, Subjects: d.Source.Subjects,
	}
	if observed != nil {
		a.Verb = Update
	}
	return a
}

// findObstacle returns the reason for which the binding cannot be created now. An existing binding that is not being
// deleted has none.
func (d *DesiredBinding) findObstacle(observed *Binding, occupant func(string) *Binding) (o BindingObstacle, met bool) {
	if observed != nil && !observed.Deleting {
		return o, false
	}
	o = BindingObstacle{Name: d.Name, Parent: d.Source.Role, Child: d.Child}
	switch {
	case observed != nil:
		o.Reason, o.Message = Pending, fmt.Sprintf("RoleBinding %s is being deleted; it is created again afterwards", d.Name)
	case occupant(d.Name) != nil:
		o.Reason, o.Message = NameConflict, fmt.Sprintf(
			"RoleBinding %s is not one that follows from %s, but has its name: delete or rename it", d.Name, d.Source.Name)
	case d.Paused:
		o.Reason, o.Message = TooManyBindings, "the rules behind it ask for too many RoleBindings"
	}
	return o, o.Reason != ""
}

// BindingDifference is a generated binding that differs from the desired one, with the action or the obstacle of its plan.
type BindingDifference struct {
	Name, Source string
	Role         Role
	// Verb is 0 if there is an obstacle.
	Verb Verb
	// Obstacle is the reason of the obstacle.
	Obstacle string
	// Subjects that the binding then has, or had if it is deleted or emptied.
	Subjects []rbacv1.Subject
}

// Differences lists one entry for each binding that the plan mentions.
func (p SourcePlan) Differences() []BindingDifference {
	list := make([]BindingDifference, 0, len(p.Actions)+len(p.Obstacles))
	for _, a := range p.Actions {
		c := BindingDifference{Name: a.Name, Source: a.Source, Role: a.Child, Verb: a.Verb, Subjects: a.Subjects}
		if a.Verb == Delete || a.Verb == Empty {
			c.Subjects = a.Observed.Subjects
		}
		list = append(list, c)
	}
	for _, o := range p.Obstacles {
		if o.Reason == Pending && slices.ContainsFunc(p.Actions, func(a Action) bool { return a.Name == o.Name }) {
			continue // The action for this binding is already listed.
		}
		list = append(list, BindingDifference{Name: o.Name, Source: p.Name, Role: o.Child, Obstacle: o.Reason, Subjects: p.Source.Subjects})
	}
	return list
}
