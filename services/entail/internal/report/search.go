package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	opensearchv1 "github.com/entail-dev/entail/gen/entail/opensearch/v1"
)

// WriteOpenSearchUsers lists users of an OpenSearch cluster.
func (p Printer) WriteOpenSearchUsers(m *opensearchv1.ListUsersResponse) {
	p.writeOpenSearchTable("USER", m.GetUsers())
}

// WriteOpenSearchRoles lists roles of an OpenSearch cluster.
func (p Printer) WriteOpenSearchRoles(m *opensearchv1.ListRolesResponse) {
	p.writeOpenSearchTable(headRole, m.GetRoles())
}

func (p Printer) writeOpenSearchTable(heading string, things []*opensearchv1.Thing) {
	rows := make([]tableRow, len(things))
	for i, t := range things {
		of := t.GetOwner()
		switch {
		case t.GetReserved():
			of = "OpenSearch itself"
		case of == "":
			of = "others"
		}
		is := "there"
		if !t.GetExists() {
			is = "missing"
		}
		rows[i] = tableRow{cells: []string{t.GetName(), is, of, cmp.Or(t.GetAskedBy(), "-"), cmp.Or(t.GetState(), "-"), truncateCell(t.GetReason())}}
		if t.GetState() == "ERROR" {
			rows[i].ink = bad
		}
	}
	p.writeTable([]string{heading, "IS", "BELONGS TO", "DECLARED BY", headState, headWhy}, rows)
}

// WriteOpenSearchMappings lists who has which role.
func (p Printer) WriteOpenSearchMappings(m *opensearchv1.ListMappingsResponse) {
	rows := make([]tableRow, len(m.GetMappings()))
	for i, has := range m.GetMappings() {
		rows[i] = tableRow{cells: []string{
			has.GetRole(), joinOrDash(has.GetUsers()), joinOrDash(has.GetBackendRoles()), joinOrDash(has.GetHosts()), joinOrDash(has.GetAndBackendRoles()),
			joinOrDash(has.GetBindings()), joinOrDash(holderTexts(has.GetHolders())),
		}}
	}
	p.writeTable([]string{headRole, "USERS", "BACKEND ROLES", "HOSTS", "ALL OF", "BINDINGS", "OTHER USERS WITH IT"}, rows)
}

// WriteMappingExplanation tells who put each entry of a role's mapping there.
func (p Printer) WriteMappingExplanation(m *opensearchv1.ExplainMappingResponse) {
	if len(m.GetEntries())+len(m.GetHolders()) == 0 {
		p.writeLinef("Nobody has the role, and no binding gives it.")
		p.writeLinef("Considered: the mapping of the role, bindings, and users in the cluster. Not considered: users of other identity providers.")
		return
	}
	for _, holder := range holderTexts(m.GetHolders()) {
		p.writeLinef("User %s has the role.", holder)
	}
	if len(m.GetEntries()) == 0 {
		return
	}
	rows := make([]tableRow, len(m.GetEntries()))
	for i, e := range m.GetEntries() {
		by := slices.Clone(e.GetBindings())
		if e.GetForeign() {
			by = append(by, "others")
		}
		rows[i] = tableRow{cells: []string{e.GetList(), e.GetValue(), joinOrDash(by), "there"}, ink: good}
		switch {
		case !e.GetExists():
			rows[i].cells[3], rows[i].ink = "missing", wait
		case len(by) == 0:
			rows[i].cells[2], rows[i].cells[3], rows[i].ink = "a binding that no longer does", "being removed", wait
		}
	}
	p.writeTable([]string{"LIST", "ENTRY", "GIVEN BY", "IS"}, rows)
}

// holderTexts are users, each with how it has a role.
func holderTexts(of []*opensearchv1.Holder) (all []string) {
	for _, h := range of {
		by := slices.Clone(h.GetBackendRoles())
		if h.GetDirect() {
			by = append([]string{"directly"}, by...)
		}
		all = append(all, fmt.Sprintf("%s (%s)", h.GetUser(), strings.Join(by, ", ")))
	}
	return all
}

// WriteOpenSearchPreview tells what would be written to an OpenSearch cluster, and said of the objects that ask for it.
func (p Printer) WriteOpenSearchPreview(m *opensearchv1.PreviewResponse) {
	if len(m.GetWrites()) == 0 {
		p.writeLinef("Nothing would be written.")
	}
	for _, w := range m.GetWrites() {
		p.writeLinef("%s %s %s", strings.ToLower(w.GetVerb()), w.GetKind(), w.GetName())
		if w.GetPassword() {
			p.writeLinef("  with the password in its Secret")
		}
		for _, f := range w.GetFields() {
			p.writeLinef("  %s: %s -> %s", f.GetField(), cmp.Or(f.GetBefore(), "nothing"), cmp.Or(f.GetAfter(), "nothing"))
		}
	}
	rows := make([]tableRow, len(m.GetVerdicts()))
	for i, v := range m.GetVerdicts() {
		rows[i] = tableRow{cells: []string{
			v.GetObject().GetKind(), v.GetObject().GetName(), cmp.Or(v.GetState(), "deleted"), cmp.Or(v.GetReason(), "-"),
			cmp.Or(truncateCell(v.GetMessage()), "-"),
		}}
		if v.GetState() == "ERROR" {
			rows[i].ink = bad
		}
	}
	p.writeLinef("")
	p.writeTable([]string{"KIND", "NAME", headState, "REASON", headWhy}, rows)
}

// WriteOpenSearchStatus counts objects by what became of them.
func (p Printer) WriteOpenSearchStatus(m *opensearchv1.GetSyncStatusResponse) {
	var rows []tableRow
	for _, kind := range m.GetKinds() {
		states := kind.GetStates()
		if len(states) == 0 {
			rows = append(rows, tableRow{cells: []string{kind.GetKind(), "-", "0"}})
		}
		for _, state := range slices.Sorted(maps.Keys(states)) {
			rows = append(rows, tableRow{cells: []string{kind.GetKind(), cmp.Or(state, "not seen yet"), countText(states[state], "object")}})
		}
	}
	p.writeTable([]string{"KIND", headState, "OBJECTS"}, rows)
}

// joinOrDash is texts in one cell.
func joinOrDash(texts []string) string { return cmp.Or(strings.Join(texts, ", "), "-") }
