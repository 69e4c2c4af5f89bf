package plan

import (
	"fmt"
	"maps"
	"slices"
)

// Entries holds the entries of a role's mapping. A user has the role if it matches one entry of the first three lists,
// or all backend roles of And.
type Entries struct {
	Users, BackendRoles, Hosts, And []string
}

// single returns the lists in which each entry counts alone.
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
	// Record lists the entries that are, or may be, on the server for the binding, by role.
	Record map[string]Entries
	// Obstacle is the reason why nothing can be written for the binding.
	Obstacle *Verdict
	// InStep means that the last status reports this generation as ready on this server.
	InStep bool
	// Undecided holds the protected roles that the binding may only give with an approval; see [Undecided]. Approval is the
	// annotation value that allows them. Approved means that the object has it.
	Undecided map[string]bool
	Approval  string
	Approved  bool
	// Elsewhere means that the binding belongs to another cluster object that leads to the same server. Recorded entries
	// that it still gives stay, and new ones are added there.
	Elsewhere bool
}

// BindingOutcome is the decision about one binding.
type BindingOutcome struct {
	Verdict
	// Before is the record that the binding must have before any write. After is the record once all writes are done.
	Before, After map[string]Entries
	// Unseen means that the record has entries that are neither wanted nor on the server. An earlier write may still
	// create them.
	Unseen bool
}

// MappingDecision is the plan for all bindings of a cluster.
type MappingDecision struct {
	Outcomes map[string]BindingOutcome
	Actions  []Action
	// Again means that further actions become possible once these are done.
	Again bool
}

// MappingsOf plans the mappings of all roles that bindings name or have recorded. It needs all bindings together: an
// entry is removed with the last binding that gives it. Entries without a record are foreign and stay. While a change
// is contested, it may still take effect, so records keep all entries.
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
			of := b
			if b.Undecided[role] && !b.Approved { // What it has given already stays.
				of.Entries = b.Entries.within(b.Record[role])
			}
			if !sameSets(of.Entries, b.Entries) && !b.Leaving && slices.Contains(b.Roles, role) {
				outcome := d.Outcomes[b.UID]
				outcome.worsen(new(bindNeeded("the binding gives", role, b.Approval)))
				d.Outcomes[b.UID] = outcome
			}
			concerned[role] = append(concerned[role], of)
		}
	}
	for _, role := range slices.Sorted(maps.Keys(concerned)) {
		entity, there := actual[role]
		m := mapping{role: role, exists: roles[role], there: there, Entity: entity, bindings: concerned[role], contested: contested}
		m.decide(&d)
	}
	return d
}

// mapping is the mapping of one role, with the bindings that name it or have recorded it.
type mapping struct {
	role          string
	exists, there bool
	Entity
	bindings []Binding
	// contested means that recorded entries may still appear on the server.
	contested bool
}

func (m mapping) wants(b Binding) bool {
	return !b.Leaving && !b.Elsewhere && b.Obstacle == nil && slices.Contains(b.Roles, m.role)
}

// kept returns the recorded entries that a binding keeps because of an obstacle, or because it gives them elsewhere.
func (m mapping) kept(b Binding) Entries {
	record := b.Record[m.role]
	switch {
	case !b.Leaving && b.Obstacle != nil:
		return record
	case !b.Leaving && b.Elsewhere && slices.Contains(b.Roles, m.role):
		return record.within(b.Entries)
	default:
		return Entries{}
	}
}

// dropped returns the recorded entries that a binding no longer gives.
func (m mapping) dropped(b Binding) Entries {
	dropped := b.Record[m.role].without(m.kept(b))
	if m.wants(b) {
		dropped = dropped.without(b.Entries)
	}
	return dropped
}

func (m mapping) decide(d *MappingDecision) {
	owners := m.owners()
	if len(owners) == 0 {
		return
	}
	has := m.has()
	foreign := m.foreign(has)
	want, conflict := m.wanted(foreign)
	// A record has room for one joint list and must hold it before the write. An old list of ours is therefore removed
	// first, and the next run writes the new one.
	changing := len(want.And) > 0 && !sameSet(want.And, has.And) && (len(has.And) > 0 && len(foreign.And) == 0 || m.mayCome(want.And))
	if changing {
		want.And = nil
	}
	if !m.exists && foreign.empty() && slices.ContainsFunc(m.bindings, func(b Binding) bool { return !m.dropped(b).within(has).empty() }) {
		want = Entries{} // The mapping can only be removed, and gives nothing. Bindings add their entries once the role is back.
	}
	for _, b := range m.bindings {
		outcome := d.Outcomes[b.UID]
		record := b.Record[m.role]
		var stays Entries // Recorded entries that may still appear.
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
			if !m.exists && !want.empty() { // The mapping cannot be written before the role is back.
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

// gives returns the entries that a binding adds to the foreign ones, and a verdict if it cannot add all of them.
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
		mine = mine.within(m.has()) // These entries remain from an earlier role of the name.
	}
	return mine, wrong
}

// mayCome reports whether a joint list other than the given one may still appear on the server.
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

// act adds the action that turns the present mapping into want, if one is needed and possible.
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
		return // Without its role the mapping cannot be written, and gives nothing.
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

// refuse applies a verdict to all bindings that want the role, and leaves their records unchanged.
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

// foreign returns the entries that no record claims. It treats And as a whole: with fewer backend roles the list would
// give the role to more users.
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

// wanted returns the entries that the mapping must have: the foreign ones in their order, and those of the bindings. A
// binding conflicts if its And differs from the one that is kept.
func (m mapping) wanted(foreign Entries) (want Entries, conflict map[string]bool) {
	want, conflict = foreign, map[string]bool{}
	keep := m.has()
	var gives Entries
	for _, b := range m.bindings { // A role has one joint list. The present one stays while a binding wants or keeps it.
		holds := m.wants(b) && sameSet(b.Entries.And, keep.And) || sameSet(m.kept(b).And, keep.And)
		if holds && len(foreign.And) == 0 {
			want.And = keep.And
		}
	}
	for _, b := range m.bindings {
		switch {
		case !m.wants(b):
			gives = gives.with(m.kept(b).within(keep))
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
