package report

import (
	"fmt"
	"strings"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
)

// WriteInferences lists the roles that each role implies.
func (p Printer) WriteInferences(m *inferencev1.ListInferencesResponse) {
	if len(m.GetInferences()) == 0 {
		p.writeLinef("No role implies another.")
		return
	}
	rows := make([]tableRow, len(m.GetInferences()))
	for i, in := range m.GetInferences() {
		rows[i] = tableRow{cells: []string{in.GetNamespace(), roleName(in.GetParent()), listedRolesText(in.GetChildRoles(), in.GetChildRolesTotal())}}
	}
	p.writeTable([]string{"NAMESPACE", headRole, "IMPLIES"}, rows)
}

// WriteBindingExplanation explains why a RoleBinding exists, or which ones it implies.
func (p Printer) WriteBindingExplanation(m *inferencev1.ExplainBindingResponse) {
	p.writeLinef("RoleBinding %s grants %s to %s.", m.GetName(), roleName(m.GetRole()),
		appendMoreCount(joinSubjectNames(m.GetSubjects()), len(m.GetSubjects()), m.GetSubjectsTotal()))
	if !m.GetGenerated() {
		p.writeImpliedBindings(m)
		return
	}
	p.writeLinef("It was generated because of RoleBinding %s (%s):", m.GetSource(), bindingStateText(m.GetState()))
	for _, reason := range m.GetReasons() {
		p.writePathSteps(reason.GetPath())
	}
	p.writeMoreNote(m.GetTruncated())
}

func (p Printer) writeImpliedBindings(m *inferencev1.ExplainBindingResponse) {
	if len(m.GetImplied()) == 0 {
		p.writeLinef("Nothing follows from it.")
		return
	}
	rows := make([]tableRow, len(m.GetImplied()))
	for i, b := range m.GetImplied() {
		path := make([]string, len(b.GetPath()))
		for j, role := range b.GetPath() {
			path[j] = roleName(role)
		}
		state := bindingStateText(b.GetState())
		if b.GetMessage() != "" {
			state += ": " + b.GetMessage()
		}
		rows[i] = tableRow{cells: []string{roleName(b.GetRole()), strings.Join(path, " -> "), b.GetName(), state}, ink: bindingStateColor(b.GetState())}
	}
	p.writeTable([]string{"IMPLIES", "BY", "ROLEBINDING", headState}, rows)
	p.writeMoreNote(m.GetTruncated())
}

func (p Printer) writeMoreNote(truncated bool) {
	if truncated {
		p.writeLinef("There is more.")
	}
}

// WriteRoleHolders lists the subjects that hold a role.
func (p Printer) WriteRoleHolders(of *inferencev1.WhoHasRoleRequest, m *inferencev1.WhoHasRoleResponse) {
	if len(m.GetHolders()) == 0 {
		p.writeLinef("Nobody holds %s in namespace %s.", roleName(of.GetRole()), of.GetNamespace())
		p.writeConsidered(of.GetNamespace(), m.GetConsidered())
		return
	}
	rows := make([]tableRow, len(m.GetHolders()))
	for i, h := range m.GetHolders() {
		bindings := appendMoreCount(strings.Join(h.GetBindings(), ", "), len(h.GetBindings()), h.GetBindingsTotal())
		rows[i] = tableRow{cells: []string{subjectName(h.GetSubject()), roleOriginText(h.GetOrigin()), bindings}}
	}
	p.writeTable([]string{"SUBJECT", "HOW", "BY BINDING"}, rows)
	p.writeMissingRole(of.GetRole(), m.GetRoleMissing())
}

// writeConsidered names what a negative answer covers, and what it does not.
func (p Printer) writeConsidered(namespace string, c *inferencev1.Considered) {
	p.writeLinef("Considered: %s and %s of namespace %s, and %s.", countText(c.GetRoleBindings(), "RoleBinding"), countText(c.GetRules(), "rule"), namespace,
		countText(c.GetClusterRoleBindings(), "ClusterRoleBinding"))
	p.writeLinef("Not considered: members of groups, PolicyBindings of IAM, and other roles with the same permissions.")
}

// writeMissingRole adds a note about a role that bindings or rules name although it does not exist.
func (p Printer) writeMissingRole(role *inferencev1.Role, missing bool) {
	if missing {
		p.writeLinef("%s does not exist: it gives no permission until it is created.", roleName(role))
	}
}

// WriteRolePreview prints the effects of a change.
func (p Printer) WriteRolePreview(m *inferencev1.Preview) {
	rows := make([]tableRow, 0, len(m.GetSubjects()))
	for _, s := range m.GetSubjects() {
		rows = append(rows, tableRow{cells: []string{
			subjectName(s.GetSubject()), listedRolesText(s.GetGained(), s.GetGainedTotal()), listedRolesText(s.GetLost(), s.GetLostTotal()),
		}})
	}
	if len(rows) > 0 {
		p.writeTable([]string{"SUBJECT", "GAINS", "LOSES"}, rows)
	}
	lines := []string{fmt.Sprintf("%s to create, %d to change, %d to delete; %s to the API server.",
		countText(m.GetCreated(), "RoleBinding"), m.GetUpdated(), m.GetDeleted(), countText(m.GetWrites(), "write"))}
	for _, c := range m.GetNewCycles() {
		lines = append(lines, "These roles would imply each other: "+listedRolesText(c.GetRoles(), c.GetRolesTotal()))
	}
	for _, c := range m.GetResolvedCycles() {
		lines = append(lines, "These roles would no longer imply each other: "+listedRolesText(c.GetRoles(), c.GetRolesTotal()))
	}
	for _, b := range m.GetBindings() {
		if b.GetChange() == inferencev1.BindingChange_CHANGE_CONFLICT {
			lines = append(lines, fmt.Sprintf("RoleBinding %s would stay as it is: another object has this name.", b.GetName()))
		}
	}
	for _, r := range m.GetRefusals() {
		lines = append(lines, fmt.Sprintf("Rule %s would not count (%s): %s", r.GetName(), r.GetReason(), r.GetMessage()))
	}
	for _, line := range lines {
		p.writeLinef("%s", line)
	}
	p.writeMoreNote(m.GetTruncated())
}

func roleName(r *inferencev1.Role) string {
	if r.GetKind() == "ClusterRole" {
		return "clusterrole/" + r.GetName()
	}
	return r.GetName()
}

// appendMoreCount appends the number of items that the list leaves out.
func appendMoreCount(list string, listed int, total int64) string {
	if more := total - int64(listed); more > 0 {
		return fmt.Sprintf("%s and %d more", list, more)
	}
	return list
}

// listedRolesText returns the listed roles, and the number of those left out.
func listedRolesText(roles []*inferencev1.Role, total int64) string {
	return appendMoreCount(joinRoleNames(roles), len(roles), total)
}

func joinRoleNames(roles []*inferencev1.Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = roleName(r)
	}
	return strings.Join(names, ", ")
}

func subjectName(s *inferencev1.Subject) string {
	name := s.GetName()
	if s.GetNamespace() != "" {
		name = s.GetNamespace() + "/" + name
	}
	return strings.ToLower(s.GetKind()) + ":" + name
}

func joinSubjectNames(subjects []*inferencev1.Subject) string {
	if len(subjects) == 0 {
		return "nobody"
	}
	names := make([]string, len(subjects))
	for i, s := range subjects {
		names[i] = subjectName(s)
	}
	return strings.Join(names, ", ")
}

func bindingStateText(s inferencev1.BindingState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "BINDING_STATE_"))
}

func bindingStateColor(s inferencev1.BindingState) ansiColor {
	switch s {
	case inferencev1.BindingState_BINDING_STATE_SYNCED:
		return good
	case inferencev1.BindingState_BINDING_STATE_PENDING:
		return wait
	case inferencev1.BindingState_BINDING_STATE_CONFLICT:
		return bad
	default:
		return plain
	}
}
