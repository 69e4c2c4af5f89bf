package report

import (
	"strings"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
)

// WriteRoleExplanation explains why a subject holds a role.
func (p Printer) WriteRoleExplanation(of *inferencev1.ExplainRoleRequest, m *inferencev1.ExplainRoleResponse) {
	if !m.GetHeld() {
		p.writeLinef("%s does not hold %s in namespace %s.", subjectName(of.GetSubject()), roleName(of.GetRole()), of.GetNamespace())
		p.writeGroups(of.GetGroups())
		p.writeConsidered(of.GetNamespace(), m.GetConsidered())
		return
	}
	for _, r := range m.GetReasons() {
		by := "%s has it by %s (%s)."
		if len(r.GetPath()) > 0 {
			by = "%s has it by %s (%s), whose role implies it:"
		}
		p.writeLinef(by, subjectName(r.GetSubject()), qualifiedBindingName(r.GetBinding()), bindingStateText(r.GetState()))
		p.writePathSteps(r.GetPath())
	}
	p.writeMoreNote(m.GetTruncated())
	p.writeMissingRole(of.GetRole(), m.GetRoleMissing())
}

// writeGroups names the groups that an answer assumes. Kubernetes does not store the groups of a user.
func (p Printer) writeGroups(groups []string) {
	if len(groups) > 0 {
		p.writeLinef("Groups of the subject by --group: %s.", strings.Join(groups, ", "))
		return
	}
	p.writeLinef("Groups of the subject: those of every user alone; --group adds others.")
}

// qualifiedBindingName returns the kind and name of a binding.
func qualifiedBindingName(name string) string {
	if kind, name, is := strings.Cut(name, "/"); is {
		return kind + " " + name
	}
	return "RoleBinding " + name
}

// writePathSteps lists the implications of a path.
func (p Printer) writePathSteps(path []*inferencev1.Step) {
	for _, step := range path {
		p.writeLinef("  %s implies %s by rule %s", roleName(step.GetFrom()), roleName(step.GetTo()),
			appendMoreCount(strings.Join(step.GetRules(), ", "), len(step.GetRules()), step.GetRulesTotal()))
	}
}

// WriteEffectiveRoles lists the roles that a subject holds.
func (p Printer) WriteEffectiveRoles(of *inferencev1.ListEffectiveRolesRequest, m *inferencev1.ListEffectiveRolesResponse) {
	if len(m.GetRoles()) == 0 {
		p.writeLinef("%s holds no role in namespace %s.", subjectName(of.GetSubject()), of.GetNamespace())
		p.writeGroups(of.GetGroups())
		p.writeConsidered(of.GetNamespace(), m.GetConsidered())
		return
	}
	rows := make([]tableRow, len(m.GetRoles()))
	for i, r := range m.GetRoles() {
		bindings := appendMoreCount(strings.Join(r.GetBindings(), ", "), len(r.GetBindings()), r.GetBindingsTotal())
		rows[i] = tableRow{cells: []string{roleName(r.GetRole()), roleOriginText(r.GetOrigin()), bindings}}
	}
	p.writeTable([]string{headRole, "HOW", "BY BINDING"}, rows)
	if m.GetSubjectUnnamed() {
		p.writeLinef("No binding names %s itself: these roles are those of its groups. Check the name.", subjectName(of.GetSubject()))
	}
	p.writeMoreNote(m.GetTruncated())
}

func roleOriginText(o inferencev1.Origin) string {
	return strings.ToLower(strings.TrimPrefix(o.String(), "ORIGIN_"))
}

// WriteDrift lists the RoleBindings that differ from the rules, and the rules and bindings whose author was never checked.
func (p Printer) WriteDrift(m *inferencev1.CheckDriftResponse) {
	for _, rule := range m.GetUnjudged() {
		p.writeLinef("Rule %s was written while no webhook checked the authors of rules.", rule)
	}
	for _, binding := range m.GetUnjudgedBindings() {
		p.writeLinef("RoleBinding %s was last written before the webhooks ran; check whether its author may bind the implied roles.", binding)
	}
	if m.GetInStep() {
		p.writeLinef("All is as it should be.")
		return
	}
	var rows []tableRow
	for _, d := range []struct {
		what string
		list []*inferencev1.BindingChange
	}{
		{"missing", m.GetMissing()}, {"extra", m.GetExtra()}, {"altered", m.GetAltered()}, {"its name is taken", m.GetConflicts()},
	} {
		for _, c := range d.list {
			source := c.GetSource()
			if source == c.GetName() {
				source = "nothing known"
			}
			rows = append(rows, tableRow{cells: []string{c.GetName(), source, roleName(c.GetRole()), d.what}, ink: bad})
		}
	}
	p.writeTable([]string{"ROLEBINDING", "BECAUSE OF", "GRANTS", "IS"}, rows)
	p.writeMoreNote(m.GetTruncated())
}

// WriteWatchMessage prints one message of a watch.
func (p Printer) WriteWatchMessage(m *inferencev1.WatchInferencesResponse) {
	for _, in := range m.GetUpserted() {
		p.writeLinef("%s: %s implies %s", in.GetNamespace(), roleName(in.GetParent()), listedRolesText(in.GetChildRoles(), in.GetChildRolesTotal()))
	}
	for _, k := range m.GetRemoved() {
		p.writeLinef("%s: %s implies nothing any more", k.GetNamespace(), roleName(k.GetParent()))
	}
	if m.GetType() == inferencev1.WatchInferencesResponse_TYPE_SNAPSHOT_END {
		p.writeLinef("That is all so far.")
	}
}
