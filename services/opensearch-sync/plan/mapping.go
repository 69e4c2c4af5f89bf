package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// MappingEntries holds the entries of a role's mapping. A user has the role if it matches one entry of the first three lists,
// or all backend roles of And.
type MappingEntries struct {
	Users, BackendRoles, Hosts, And []string
}

// singleLists returns the lists in which each entry counts alone.
func (e *MappingEntries) singleLists() []*[]string {
	return []*[]string{&e.Users, &e.BackendRoles, &e.Hosts}
}

func (e MappingEntries) isEmpty() bool {
	return len(e.Users)+len(e.BackendRoles)+len(e.Hosts)+len(e.And) == 0
}

// RoleBinding is an object that gives roles.
type RoleBinding struct {
	UID     string
	Leaving bool
	Roles   []string
	Entries MappingEntries
	// Record lists the entries that are, or may be, on the server for the binding, by role.
	Record map[string]MappingEntries
	// Seen holds recorded entries that the server has listed since the unanswered change, so no earlier write can create them.
	Seen map[string]MappingEntries
	// Obstacle is the reason why nothing can be written for the binding.
	Obstacle *Verdict
	// InStep means that the last status reports this generation as ready on this server.
	InStep bool
	// Undecided holds the protected roles that the binding may only give with an approval; see [RolesUncheckedByAdmission]. Approval is the
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
	Before, After map[string]MappingEntries
	// Unseen holds the recorded entries that are not on the server. An earlier write may still create them.
	Unseen map[string]MappingEntries
	// Seen holds the recorded entries that the server lists or has listed; see [RoleBinding].
	Seen map[string]MappingEntries
	// Drops means that the server has recorded entries that are no longer wanted. An earlier removal of them, which names
	// entries by their index, may still take effect.
	Drops bool
}

// MappingDecision is the plan for all bindings of a cluster.
type MappingDecision struct {
	Outcomes map[string]BindingOutcome
	Actions  []Action
	// Again means that further actions become possible once these are done.
	Again bool
}

// DecideMappings plans the mappings of all roles that bindings name or have recorded. It needs all bindings together: an
// entry is removed with the last binding that gives it. Entries without a record are foreign and stay. While a change
// is contested, it may still take effect. Records then keep the entries that it may create, and nothing is written twice.
// An entry that the server has listed does then not return after its removal, unless another writer adds it.
func DecideMappings(bindings []RoleBinding, actual map[string]Entity, roles map[string]bool, contested bool) MappingDecision {
	d := MappingDecision{Outcomes: map[string]BindingOutcome{}}
	concerned := map[string][]RoleBinding{}
	for _, b := range bindings {
		verdict := SyncedVerdict()
		if b.Obstacle != nil {
			verdict = *b.Obstacle
		}
		none := func() map[string]MappingEntries { return map[string]MappingEntries{} }
		d.Outcomes[b.UID] = BindingOutcome{Verdict: verdict, Before: none(), After: none(), Unseen: none(), Seen: none()}
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
				of.Entries = b.Entries.intersect(b.Record[role])
			}
			if !equalEntries(of.Entries, b.Entries) && !b.Leaving && slices.Contains(b.Roles, role) {
				outcome := d.Outcomes[b.UID]
				outcome.replaceIfWorse(new(missingBindVerbVerdict("the binding gives", role, b.Approval)))
				d.Outcomes[b.UID] = outcome
			}
			concerned[role] = append(concerned[role], of)
		}
	}
	for _, role := range slices.Sorted(maps.Keys(concerned)) {
		entity, there := actual[role]
		m := roleMapping{role: role, exists: roles[role], there: there, Entity: entity, bindings: concerned[role], contested: contested}
		m.decideMapping(&d)
	}
	return d
}

// roleMapping is the mapping of one role, with the bindings that name it or have recorded it.
type roleMapping struct {
	role          string
	exists, there bool
	Entity
	bindings []RoleBinding
	// contested means that recorded entries may still appear on the server.
	contested bool
}

func (m roleMapping) isDeclaredBy(b RoleBinding) bool {
	return !b.Leaving && !b.Elsewhere && b.Obstacle == nil && slices.Contains(b.Roles, m.role)
}

// keptEntries returns the recorded entries that a binding keeps because of an obstacle, or because it gives them elsewhere.
func (m roleMapping) keptEntries(b RoleBinding) MappingEntries {
	record := b.Record[m.role]
	switch {
	case !b.Leaving && b.Obstacle != nil:
		return record
	case !b.Leaving && b.Elsewhere && slices.Contains(b.Roles, m.role):
		return record.intersect(b.Entries)
	default:
		return MappingEntries{}
	}
}

// droppedEntries returns the recorded entries that a binding no longer gives.
func (m roleMapping) droppedEntries(b RoleBinding) MappingEntries {
	dropped := b.Record[m.role].minus(m.keptEntries(b))
	if m.isDeclaredBy(b) {
		dropped = dropped.minus(b.Entries)
	}
	return dropped
}

// hasDropped reports whether the mapping has recorded entries that a binding no longer gives.
func (m roleMapping) hasDropped(b RoleBinding) bool {
	return !m.droppedEntries(b).intersect(m.actualEntries()).isEmpty()
}

func (m roleMapping) decideMapping(d *MappingDecision) {
	owners := m.ownerUIDs()
	if len(owners) == 0 {
		return
	}
	has := m.actualEntries()
	foreign := m.foreignEntries(has)
	want, conflict := m.desiredEntries(foreign)
	// A record has room for one joint list and must hold it before the write. An old list of ours is therefore removed
	// first, and the next run writes the new one.
	changing := len(want.And) > 0 && !equalSet(want.And, has.And) && len(has.And) > 0 && len(foreign.And) == 0
	if changing {
		want.And = nil
	}
	if !m.exists && foreign.isEmpty() && slices.ContainsFunc(m.bindings, m.hasDropped) {
		want = MappingEntries{} // The mapping can only be removed, and gives nothing. Bindings add their entries once the role is back.
	}
	want = m.withoutGrowth(want)
	for _, b := range m.bindings {
		outcome := d.Outcomes[b.UID]
		var mine MappingEntries
		if m.isDeclaredBy(b) {
			var wrong *Verdict
			mine, wrong = m.entriesGiven(b, foreign, conflict[b.UID], changing)
			outcome.replaceIfWorse(wrong)
		}
		m.decideRecord(b, &outcome, mine, want)
		d.Outcomes[b.UID] = outcome
	}
	acts := len(d.Actions)
	m.addMappingAction(d, want, owners)
	d.Again = d.Again || changing && len(d.Actions) > acts
}

// decideRecord adds the record of a binding for the role to its outcome. The binding gives mine, and the mapping becomes want.
func (m roleMapping) decideRecord(b RoleBinding, outcome *BindingOutcome, mine, want MappingEntries) {
	has, record := m.actualEntries(), b.Record[m.role]
	if !b.Leaving && b.Obstacle != nil {
		putEntries(outcome.Before, m.role, record)
		putEntries(outcome.After, m.role, record)
		return
	}
	unseen := record.minus(has).minus(b.Seen[m.role])
	before, after := record, mine
	if m.isDeclaredBy(b) {
		before = record.withExistingAnd(has).union(mine)
	}
	if !m.exists && !m.isRemovedBy(want) { // The mapping cannot be written before the role is back.
		after = record.intersect(has).union(after)
	}
	if m.contested {
		before, after = before.union(unseen), after.union(unseen)
	}
	putEntries(outcome.Before, m.role, before)
	putEntries(outcome.After, m.role, after)
	putEntries(outcome.Unseen, m.role, unseen)
	putEntries(outcome.Seen, m.role, record.intersect(has.union(b.Seen[m.role])))
	outcome.Drops = outcome.Drops || m.hasDropped(b)
}

// withoutGrowth returns want without new entries while an unanswered change may still take effect. A second addition could come
// after a removal. A late removal names entries by their index, so the lists must not become as long again before.
func (m roleMapping) withoutGrowth(want MappingEntries) MappingEntries {
	if !m.contested {
		return want
	}
	return want.intersect(m.actualEntries())
}

// ownerUIDs returns the UIDs of the bindings that are decided here.
func (m roleMapping) ownerUIDs() (uids []string) {
	for _, b := range m.bindings {
		if !b.Elsewhere {
			uids = append(uids, b.UID)
		}
	}
	return uids
}

// entriesGiven returns the entries that a binding adds to the foreign ones, and a verdict if it cannot add all of them.
func (m roleMapping) entriesGiven(b RoleBinding, foreign MappingEntries, conflict, changing bool) (mine MappingEntries, wrong *Verdict) {
	mine = b.Entries.minus(foreign)
	switch {
	case conflict:
		mine.And = nil
		wrong = new(failedVerdict(AndConflict, fmt.Sprintf(
			"role %q has another list andBackendRoles; a role can have only one", m.role)))
	case changing && len(mine.And) > 0:
		mine.And = nil
		wrong = new(pendingVerdict(AndConflict, fmt.Sprintf(
			"role %q has another list andBackendRoles, which is removed first", m.role)))
	}
	if !m.exists {
		if wrong == nil {
			wrong = new(pendingVerdict(RoleMissing, fmt.Sprintf("role %q is not in OpenSearch yet", m.role)))
		}
		mine = mine.intersect(m.actualEntries()) // These entries remain from an earlier role of the name.
	}
	if now := m.withoutGrowth(mine); !equalEntries(now, mine) {
		mine = now.union(mine.intersect(b.Record[m.role]))
		wrong = cmp.Or(wrong, new(pendingVerdict(Writing, fmt.Sprintf(
			"an earlier change of the mapping of role %q got no answer and may still take effect; it is repeated", m.role))))
	}
	return mine, wrong
}

func putEntries(record map[string]MappingEntries, role string, e MappingEntries) {
	if !e.isEmpty() {
		record[role] = e
	}
}

// addMappingAction adds the action that turns the present mapping into want, if one is needed and possible.
func (m roleMapping) addMappingAction(d *MappingDecision, want MappingEntries, owners []string) {
	has := m.actualEntries()
	if m.Guarded || equalEntries(has, want) {
		if m.Guarded && !equalEntries(has, want) {
			m.refuseBindings(d)
		}
		return
	}
	action := Action{Name: m.role, For: owners}
	switch {
	case m.isRemovedBy(want):
	case !m.exists:
		return // Without its role the mapping cannot be written, and gives nothing.
	default:
		action.Body = Mappings.completeBody(Body{
			"users": toAnySlice(want.Users), fieldBackendRoles: toAnySlice(want.BackendRoles), "hosts": toAnySlice(want.Hosts),
			"and_backend_roles": toAnySlice(want.And), fieldDescription: m.Body[fieldDescription],
		})
		if m.there {
			action.Was = m.Body
		}
	}
	if !slices.ContainsFunc(m.bindings, func(b RoleBinding) bool { return !b.InStep && !b.Elsewhere }) {
		action.Drift = Mappings.changedFields(action.Body, m.Body)
	}
	d.Actions = append(d.Actions, action)
}

// isRemovedBy reports whether the mapping is removed as a whole if it must become want.
func (m roleMapping) isRemovedBy(want MappingEntries) bool {
	described, _ := m.Body[fieldDescription].(string)
	return want.isEmpty() && described == ""
}

// refuseBindings reports a reserved mapping to all bindings that want the role or have entries that must go. It leaves their
// records unchanged.
func (m roleMapping) refuseBindings(d *MappingDecision) {
	for _, b := range m.bindings {
		v := failedVerdict(Reserved, fmt.Sprintf("OpenSearch reserves the mapping of role %q for itself", m.role))
		switch dropped := m.hasDropped(b); {
		case b.Elsewhere || !dropped && !m.isDeclaredBy(b):
			continue
		case dropped:
			v.Message += ", with entries of this object; end the reservation in OpenSearch"
		}
		outcome := d.Outcomes[b.UID]
		outcome.replaceIfWorse(&v)
		outcome.After, outcome.Before = maps.Clone(outcome.After), maps.Clone(outcome.Before)
		delete(outcome.After, m.role)
		delete(outcome.Before, m.role)
		putEntries(outcome.Before, m.role, b.Record[m.role])
		putEntries(outcome.After, m.role, b.Record[m.role])
		d.Outcomes[b.UID] = outcome
	}
}

func (m roleMapping) actualEntries() MappingEntries {
	return MappingEntries{
		Users: m.stringListOf("users"), BackendRoles: m.stringListOf(fieldBackendRoles), Hosts: m.stringListOf("hosts"),
		And: m.stringListOf("and_backend_roles"),
	}
}

// foreignEntries returns the entries that no record claims. It treats And as a whole: with fewer backend roles the list would
// give the role to more users.
func (m roleMapping) foreignEntries(has MappingEntries) MappingEntries {
	var recorded MappingEntries
	joint := false
	for _, b := range m.bindings {
		record := b.Record[m.role]
		recorded = recorded.union(record)
		joint = joint || len(record.And) > 0 && equalSet(record.And, has.And)
	}
	recorded.And = nil
	foreign := has.minus(recorded)
	if foreign.And = has.And; joint {
		foreign.And = nil
	}
	return foreign
}

// desiredEntries returns the entries that the mapping must have: the foreign ones in their order, and those of the bindings. A
// binding conflicts if its And differs from the one that is kept.
func (m roleMapping) desiredEntries(foreign MappingEntries) (want MappingEntries, conflict map[string]bool) {
	want, conflict = foreign, map[string]bool{}
	keep := m.actualEntries()
	var gives MappingEntries
	for _, b := range m.bindings { // A role has one joint list. The present one stays while a binding wants or keeps it.
		holds := m.isDeclaredBy(b) && equalSet(b.Entries.And, keep.And) || equalSet(m.keptEntries(b).And, keep.And)
		if holds && len(foreign.And) == 0 {
			want.And = keep.And
		}
	}
	for _, b := range m.bindings {
		switch {
		case !m.isDeclaredBy(b):
			gives = gives.union(m.keptEntries(b).intersect(keep))
			continue
		case len(b.Entries.And) == 0 || equalSet(b.Entries.And, want.And):
		case len(want.And) == 0:
			want.And = sortUnique(b.Entries.And)
		default:
			conflict[b.UID] = true
		}
		gives = gives.union(MappingEntries{Users: b.Entries.Users, BackendRoles: b.Entries.BackendRoles, Hosts: b.Entries.Hosts})
	}
	and := want.And
	all := want.union(gives)
	want = keep.intersect(all).union(all)
	want.And = and
	return want, conflict
}
