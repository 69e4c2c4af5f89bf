package plan

import (
	"fmt"
	"maps"
	"slices"
)

// Entries are entries of a role's mapping. Whoever is, or has, one of the first three has the role, and so has who has all of
// And.
type Entries struct {
	Users, BackendRoles, Hosts, And []string
}

// single are the lists in which each entry stands for itself.
func (e *Entries) single() []*[]string { return []*[]string{&e.Users, &e.BackendRoles, &e.Hosts} }

func (e Entries) empty() bool {
	return len(e.Users)+len(e.BackendRoles)+len(e.Hosts)+len(e.And) == 0
}

// Binding is an object that gives roles.
type Binding struct {
	UID     string
	Leaving bool
	Roles   []string
	Entries Entries
	// Record says what is, or may be, on the server for it, by role.
	Record map[string]Entries
	// Obstacle is why nothing can be written for it.
	Obstacle *Verdict
	// InStep means that its last status says of this very generation that the server has it.
	InStep bool
	// Elsewhere means that another cluster object leads to the same server: the binding keeps what it has, and is decided there.
	Elsewhere bool
}

// BindingOutcome is what is to be done about one binding.
type BindingOutcome struct {
	Verdict
	// Before must be its record before anything is written, After is it once all is.
	Before, After map[string]Entries
	// Unseen means that its record has what is neither there nor wanted: nobody has seen whether it came.
	Unseen bool
}

// MappingDecision is what is to be done about all bindings of a cluster.
type MappingDecision struct {
	Outcomes map[string]BindingOutcome
	Actions  []Action
	// Again means that something can only be done once the actions are.
	Again bool
}

// MappingsOf decides about the mappings of all roles that bindings speak of, from all bindings together: an entry goes with the
// last binding that gives it. What is on the server and in nobody's record is others', and stays. While a change is contested, which
// may still come to pass, records keep all that they have.
func MappingsOf(bindings []Binding, actual map[string]Entity, roles map[string]bool, contested bool) MappingDecision {
	d := MappingDecision{Outcomes: map[string]BindingOutcome{}}
	concerned := map[string][]Binding{}
	for _, b := range bindings {
		verdict := InStep()
		if b.Obstacle != nil {
			verdict = *b.Obstacle
		}
		d.Outcomes[b.UID] = BindingOutcome{Verdict: verdict, Before: map[string]Entries{}, After: map[string]Entries{}}
		speaks := map[string]bool{}
		for _, role := range b.Roles {
			speaks[role] = true
		}
		for role := range b.Record {
			speaks[role] = true
		}
		for role := range speaks {
			concerned[role] = append(concerned[role], b)
		}
	}
	for _, role := range slices.Sorted(maps.Keys(concerned)) {
		entity, there := actual[role]
		m := mapping{role: role, exists: roles[role], there: there, Entity: entity, bindings: concerned[role], contested: contested}
		m.decide(&d)
	}
	return d
}

// mapping is that of one role, with the bindings that speak of it.
type mapping struct {
	role          string
	exists, there bool
	Entity
	bindings []Binding
	// contested means that what is recorded may still come.
	contested bool
}

func (m mapping) wants(b Binding) bool {
	return !b.Leaving && b.Obstacle == nil && slices.Contains(b.Roles, m.role)
}

// keeps reports whether a binding keeps what it has: something stands in its way.
func (m mapping) keeps(b Binding) bool { return !b.Leaving && b.Obstacle != nil }

func (m mapping) decide(d *MappingDecision) {
	owners := m.owners()
	if len(owners) == 0 {
		return
	}
	has := m.has()
	foreign := m.foreign(has)
	want, conflict := m.wanted(foreign)
	// A list of ours goes before the next one comes: a record has room for one, and must have it before it is there.
	changing := len(want.And) > 0 && !sameSet(want.And, has.And) && (len(has.And) > 0 && len(foreign.And) == 0 || m.mayCome(want.And))
	if changing {
		want.And = nil
	}
	for _, b := range m.bindings {
		outcome := d.Outcomes[b.UID]
		record := b.Record[m.role]
		var stays Entries // Of what is recorded, what may still come.
		if m.contested {
			stays = record
		}
		switch {
		case m.wants(b):
			mine, wrong := m.gives(b, foreign, conflict[b.UID], changing)
			outcome.worsen(wrong)
			outcome.Unseen = outcome.Unseen || !record.without(has).without(mine).empty()
			put(outcome.After, m.role, mine.with(stays))
			put(outcome.Before, m.role, record.and(has).with(mine).with(stays))
		case b.Obstacle != nil:
			put(outcome.After, m.role, record)
			put(outcome.Before, m.role, record)
		default:
			outcome.Unseen = outcome.Unseen || !record.without(has).empty()
			put(outcome.Before, m.role, record)
			if !m.exists && !want.empty() { // Nobody can take it away before the role is back.
				stays = record.within(has).with(stays)
			}
			put(outcome.After, m.role, stays)
		}
		d.Outcomes[b.UID] = outcome
	}
	acts := len(d.Actions)
	m.act(d, want, owners)
	d.Again = d.Again || changing && len(d.Actions) > acts
}

// owners returns the UIDs of the bindings that are decided here.
func (m mapping) owners() (uids []string) {
	for _, b := range m.bindings {
		if !b.Elsewhere {
			uids = append(uids, b.UID)
		}
	}
	return uids
}

// gives is what a binding gives beside others, and what is wrong with the rest, if anything is.
func (m mapping) gives(b Binding, foreign Entries, conflict, changing bool) (mine Entries, wrong *Verdict) {
	mine = b.Entries.without(foreign)
	switch {
	case conflict:
		mine.And = nil
		wrong = new(failed(AndConflict, fmt.Sprintf(
			"role %q has another list of backend roles that are asked for together: a role has one", m.role)))
	case changing && len(mine.And) > 0:
		mine.And = nil
		wrong = new(pending(AndConflict, fmt.Sprintf(
			"role %q has another list of backend roles that are asked for together: it goes first", m.role)))
	}
	if !m.exists {
		if wrong == nil {
			wrong = new(pending(RoleMissing, fmt.Sprintf("role %q is not in OpenSearch yet", m.role)))
		}
		mine = mine.within(m.has()) // What is left over from a role before.
	}
	return mine, wrong
}

// mayCome reports whether another list of backend roles than this one may still come.
func (m mapping) mayCome(than []string) bool {
	return m.contested && slices.ContainsFunc(m.bindings, func(b Binding) bool {
		and := b.Record[m.role].And
		return len(and) > 0 && !sameSet(and, than)
	})
}

func put(record map[string]Entries, role string, e Entries) {
	if !e.empty() {
		record[role] = e
	}
}

// act adds what makes of what is there what is wanted.
func (m mapping) act(d *MappingDecision, want Entries, owners []string) {
	has := m.has()
	if m.Guarded || sameSets(has, want) {
		if m.Guarded && !sameSets(has, want) {
			m.refuse(d, failed(Reserved, fmt.Sprintf("OpenSearch reserves the mapping of role %q for itself", m.role)))
		}
		return
	}
	described, _ := m.Body[fieldDescription].(string)
	action := Action{Name: m.role, For: owners}
	switch {
	case want.empty() && described == "":
	case !m.exists:
		return // Nobody can write it, and it gives nothing to anybody.
	default:
		action.Body = Mappings.whole(Body{
			"users": list(want.Users), fieldBackendRoles: list(want.BackendRoles), "hosts": list(want.Hosts),
			"and_backend_roles": list(want.And), fieldDescription: m.Body[fieldDescription],
		})
	}
	if !slices.ContainsFunc(m.bindings, func(b Binding) bool { return !b.InStep && !b.Elsewhere }) {
		action.Drift = Mappings.changed(action.Body, m.Body)
	}
	d.Actions = append(d.Actions, action)
}

// refuse makes a verdict that of all bindings that want something.
func (m mapping) refuse(d *MappingDecision, v Verdict) {
	for _, b := range m.bindings {
		if !m.wants(b) {
			continue
		}
		outcome := d.Outcomes[b.UID]
		outcome.worsen(&v)
		outcome.After, outcome.Before = maps.Clone(outcome.After), maps.Clone(outcome.Before)
		delete(outcome.After, m.role)
		delete(outcome.Before, m.role)
		put(outcome.Before, m.role, b.Record[m.role])
		put(outcome.After, m.role, b.Record[m.role])
		d.Outcomes[b.UID] = outcome
	}
}

func (m mapping) has() Entries {
	return Entries{
		Users: m.list("users"), BackendRoles: m.list(fieldBackendRoles), Hosts: m.list("hosts"), And: m.list("and_backend_roles"),
	}
}

// foreign is what is there and in nobody's record. Backend roles that are asked for together are one thing: without one of them
// the others would give the role to more.
func (m mapping) foreign(has Entries) Entries {
	var recorded Entries
	joint := false
	for _, b := range m.bindings {
		record := b.Record[m.role]
		recorded = recorded.with(record)
		joint = joint || len(record.And) > 0 && sameSet(record.And, has.And)
	}
	recorded.And = nil
	foreign := has.without(recorded)
	if foreign.And = has.And; joint {
		foreign.And = nil
	}
	return foreign
}

// wanted is what must be there: all that is foreign, in its order, and what bindings give. A binding conflicts whose list of
// backend roles is another than the one that holds.
func (m mapping) wanted(foreign Entries) (want Entries, conflict map[string]bool) {
	want, conflict = foreign, map[string]bool{}
	keep := m.has()
	var gives Entries
	for _, b := range m.bindings { // A role has one such list: the one that is there, if somebody still wants it, or keeps what they have.
		holds := m.wants(b) && sameSet(b.Entries.And, keep.And) || m.keeps(b) && sameSet(b.Record[m.role].And, keep.And)
		if holds && len(foreign.And) == 0 {
			want.And = keep.And
		}
	}
	for _, b := range m.bindings {
		switch {
		case !m.wants(b):
			if m.keeps(b) {
				gives = gives.with(b.Record[m.role].within(keep))
			}
			continue
		case len(b.Entries.And) == 0 || sameSet(b.Entries.And, want.And):
		case len(want.And) == 0:
			want.And = sorted(b.Entries.And)
		default:
			conflict[b.UID] = true
		}
		gives = gives.with(Entries{Users: b.Entries.Users, BackendRoles: b.Entries.BackendRoles, Hosts: b.Entries.Hosts})
	}
	and := want.And
	all := want.with(gives)
	want = keep.within(all).with(all)
	want.And = and
	return want, conflict
}
