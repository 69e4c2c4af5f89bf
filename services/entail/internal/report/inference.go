package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
)

// Inferences lists what every role implies.
func (p Page) Inferences(m *inferencev1.ListInferencesResponse) {
	if len(m.GetInferences()) == 0 {
		p.linef("No role implies another.")
		return
	}
	rows := make([]row, len(m.GetInferences()))
	for i, in := range m.GetInferences() {
		rows[i] = row{cells: []string{in.GetNamespace(), roleName(in.GetParent()), someRoles(in.GetChildRoles(), in.GetChildRolesTotal())}}
	}
	p.table([]string{"NAMESPACE", "ROLE", "IMPLIES"}, rows)
}

// InferenceTree draws which role implies which by a rule of its own. A role that was
// drawn before is not drawn in full again; so a cycle ends.
func (p Page) InferenceTree(m *inferencev1.ListInferencesResponse) {
	byNamespace := map[string]tree{}
	for _, in := range m.GetInferences() {
		if byNamespace[in.GetNamespace()] == nil {
			byNamespace[in.GetNamespace()] = tree{}
		}
		byNamespace[in.GetNamespace()][roleName(in.GetParent())] = in
	}
	if len(byNamespace) == 0 {
		p.linef("No role implies another.")
		return
	}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		p.linef("%s", namespace)
		t, drawn := byNamespace[namespace], map[string]bool{}
		for _, root := range t.roots() {
			p.branch(t, drawn, twig{name: root, stem: "  "})
		}
	}
}

// tree is the rows of a namespace by role.
type tree map[string]*inferencev1.Inference

// roots are the roles that nothing implies, then one of each cycle that no root leads to.
func (t tree) roots() []string {
	implied, reached := map[string]bool{}, map[string]bool{}
	for _, in := range t {
		for _, child := range in.GetDirect() {
			implied[roleName(child)] = true
		}
	}
	var roots []string
	reach := func(name string) {
		roots, reached[name] = append(roots, name), true
		for _, child := range t[name].GetChildRoles() {
			reached[roleName(child)] = true
		}
	}
	for _, first := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(t)) {
			if first && !implied[name] || !first && !reached[name] {
				reach(name)
			}
		}
	}
	return roots
}

// twig is a role where it stands in the drawing.
type twig struct {
	name, stem, joint string
}

func (p Page) branch(t tree, drawn map[string]bool, w twig) {
	children := t[w.name].GetDirect()
	again := drawn[w.name] && len(children) > 0
	drawn[w.name] = true
	note := ""
	if again {
		note = " (above)"
	} else if t[w.name].GetTruncated() {
		note = " (not all that it implies)"
	}
	p.linef("%s%s%s%s", w.stem, w.joint, w.name, note)
	if again {
		return
	}
	stem := w.stem
	switch w.joint {
	case "├─ ":
		stem += "│  "
	case "└─ ":
		stem += "   "
	}
	for i, child := range children {
		joint := "├─ "
		if i == len(children)-1 {
			joint = "└─ "
		}
		p.branch(t, drawn, twig{roleName(child), stem, joint})
	}
}

// Binding tells why a RoleBinding is there, or what it implies.
func (p Page) Binding(m *inferencev1.ExplainBindingResponse) {
	p.linef("RoleBinding %s grants %s to %s.", m.GetName(), roleName(m.GetRole()),
		andMore(subjectNames(m.GetSubjects()), len(m.GetSubjects()), m.GetSubjectsTotal()))
	if !m.GetGenerated() {
		p.implied(m)
		return
	}
	p.linef("It was generated because of RoleBinding %s (%s):", m.GetSource(), bindingState(m.GetState()))
	for _, reason := range m.GetReasons() {
		p.steps(reason.GetPath())
	}
	p.more(m.GetTruncated())
}

func (p Page) implied(m *inferencev1.ExplainBindingResponse) {
	if len(m.GetImplied()) == 0 {
		p.linef("Nothing follows from it.")
		return
	}
	rows := make([]row, len(m.GetImplied()))
	for i, b := range m.GetImplied() {
		path := make([]string, len(b.GetPath()))
		for j, role := range b.GetPath() {
			path[j] = roleName(role)
		}
		state := bindingState(b.GetState())
		if b.GetMessage() != "" {
			state += ": " + b.GetMessage()
		}
		rows[i] = row{cells: []string{roleName(b.GetRole()), strings.Join(path, " -> "), b.GetName(), state}, ink: bindingInk(b.GetState())}
	}
	p.table([]string{"IMPLIES", "BY", "ROLEBINDING", "STATE"}, rows)
	p.more(m.GetTruncated())
}

func (p Page) more(truncated bool) {
	if truncated {
		p.linef("There is more.")
	}
}

// Holders lists who holds a role.
func (p Page) Holders(m *inferencev1.WhoHasRoleResponse) {
	if len(m.GetHolders()) == 0 {
		p.linef("Nobody holds it.")
		return
	}
	rows := make([]row, len(m.GetHolders()))
	for i, h := range m.GetHolders() {
		bindings := andMore(strings.Join(h.GetBindings(), ", "), len(h.GetBindings()), h.GetBindingsTotal())
		rows[i] = row{cells: []string{subjectName(h.GetSubject()), origin(h.GetOrigin()), bindings}}
	}
	p.table([]string{"SUBJECT", "HOW", "BY BINDING"}, rows)
}

// Preview tells what a change would do.
func (p Page) Preview(m *inferencev1.Preview) {
	rows := make([]row, 0, len(m.GetSubjects()))
	for _, s := range m.GetSubjects() {
		rows = append(rows, row{cells: []string{
			subjectName(s.GetSubject()), someRoles(s.GetGained(), s.GetGainedTotal()), someRoles(s.GetLost(), s.GetLostTotal()),
		}})
	}
	if len(rows) > 0 {
		p.table([]string{"SUBJECT", "GAINS", "LOSES"}, rows)
	}
	lines := []string{fmt.Sprintf("%s to make, %d to change, %d to delete; %s to the API server.",
		count(m.GetCreated(), "RoleBinding"), m.GetUpdated(), m.GetDeleted(), count(m.GetWrites(), "write"))}
	for _, c := range m.GetNewCycles() {
		lines = append(lines, "These would imply each other: "+someRoles(c.GetRoles(), c.GetRolesTotal()))
	}
	for _, c := range m.GetResolvedCycles() {
		lines = append(lines, "These would no longer imply each other: "+someRoles(c.GetRoles(), c.GetRolesTotal()))
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
		p.linef("%s", line)
	}
	p.more(m.GetTruncated())
}

func roleName(r *inferencev1.Role) string {
	if r.GetKind() == "ClusterRole" {
		return "clusterrole/" + r.GetName()
	}
	return r.GetName()
}

// andMore adds to a list how many of all are not in it.
func andMore(list string, listed int, total int64) string {
	if more := total - int64(listed); more > 0 {
		return fmt.Sprintf("%s and %d more", list, more)
	}
	return list
}

// someRoles are those of all roles that are listed.
func someRoles(roles []*inferencev1.Role, total int64) string {
	return andMore(roleNames(roles), len(roles), total)
}

func roleNames(roles []*inferencev1.Role) string {
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

func subjectNames(subjects []*inferencev1.Subject) string {
	if len(subjects) == 0 {
		return "nobody"
	}
	names := make([]string, len(subjects))
	for i, s := range subjects {
		names[i] = subjectName(s)
	}
	return strings.Join(names, ", ")
}

func bindingState(s inferencev1.BindingState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "BINDING_STATE_"))
}

func bindingInk(s inferencev1.BindingState) ink {
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
