package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	opensearchv1 "github.com/entail-dev/entail/gen/entail/opensearch/v1"
)

// SearchUsers lists users of an OpenSearch cluster.
func (p Page) SearchUsers(m *opensearchv1.ListUsersResponse) { p.things("USER", m.GetUsers()) }

// SearchRoles lists roles of an OpenSearch cluster.
func (p Page) SearchRoles(m *opensearchv1.ListRolesResponse) { p.things(headRole, m.GetRoles()) }

func (p Page) things(heading string, things []*opensearchv1.Thing) {
	rows := make([]row, len(things))
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
		rows[i] = row{cells: []string{t.GetName(), is, of, cmp.Or(t.GetAskedBy(), "-"), cmp.Or(t.GetState(), "-"), shorten(t.GetReason())}}
		if t.GetState() == "ERROR" {
			rows[i].ink = bad
		}
	}
	p.table([]string{heading, "IS", "OF", "ASKED FOR BY", headState, "WHY"}, rows)
}

// SearchMappings lists who has which role.
func (p Page) SearchMappings(m *opensearchv1.ListMappingsResponse) {
	rows := make([]row, len(m.GetMappings()))
	for i, has := range m.GetMappings() {
		rows[i] = row{cells: []string{
			has.GetRole(), listed(has.GetUsers()), listed(has.GetBackendRoles()), listed(has.GetHosts()), listed(has.GetAndBackendRoles()),
			listed(has.GetBindings()), listed(holders(has.GetHolders())),
		}}
	}
	p.table([]string{headRole, "USERS", "BACKEND ROLES", "HOSTS", "ALL OF", "BINDINGS", "OTHER USERS WITH IT"}, rows)
}

// SearchMapping tells who put each entry of a role's mapping there.
func (p Page) SearchMapping(m *opensearchv1.ExplainMappingResponse) {
	if len(m.GetEntries())+len(m.GetHolders()) == 0 {
		p.linef("Nobody has the role, and no binding gives it.")
		return
	}
	for _, holder := range holders(m.GetHolders()) {
		p.linef("User %s has the role.", holder)
	}
	if len(m.GetEntries()) == 0 {
		return
	}
	rows := make([]row, len(m.GetEntries()))
	for i, e := range m.GetEntries() {
		by := slices.Clone(e.GetBindings())
		if e.GetForeign() {
			by = append(by, "others")
		}
		rows[i] = row{cells: []string{e.GetList(), e.GetValue(), listed(by), "there"}, ink: good}
		switch {
		case !e.GetExists():
			rows[i].cells[3], rows[i].ink = "missing", wait
		case len(by) == 0:
			rows[i].cells[2], rows[i].cells[3], rows[i].ink = "a binding that no longer does", "about to go", wait
		}
	}
	p.table([]string{"LIST", "ENTRY", "GIVEN BY", "IS"}, rows)
}

// holders are users, each with how it has a role.
func holders(of []*opensearchv1.Holder) (all []string) {
	for _, h := range of {
		by := slices.Clone(h.GetBackendRoles())
		if h.GetDirect() {
			by = append([]string{"directly"}, by...)
		}
		all = append(all, fmt.Sprintf("%s (%s)", h.GetUser(), strings.Join(by, ", ")))
	}
	return all
}

// SearchPreview tells what would be written to an OpenSearch cluster, and said of the objects that ask for it.
func (p Page) SearchPreview(m *opensearchv1.PreviewResponse) {
	if len(m.GetWrites()) == 0 {
		p.linef("Nothing would be written.")
	}
	for _, w := range m.GetWrites() {
		p.linef("%s %s %s", strings.ToLower(w.GetVerb()), w.GetKind(), w.GetName())
		if w.GetPassword() {
			p.linef("  with the password in its Secret")
		}
		for _, f := range w.GetFields() {
			p.linef("  %s: %s -> %s", f.GetField(), cmp.Or(f.GetBefore(), "nothing"), cmp.Or(f.GetAfter(), "nothing"))
		}
	}
	rows := make([]row, len(m.GetVerdicts()))
	for i, v := range m.GetVerdicts() {
		rows[i] = row{cells: []string{
			v.GetObject().GetKind(), v.GetObject().GetName(), cmp.Or(v.GetState(), "deleted"), cmp.Or(v.GetReason(), "-"), cmp.Or(shorten(v.GetMessage()), "-"),
		}}
		if v.GetState() == "ERROR" {
			rows[i].ink = bad
		}
	}
	p.linef("")
	p.table([]string{"KIND", "NAME", headState, "REASON", "WHY"}, rows)
}

// SearchStatus counts objects by what became of them.
func (p Page) SearchStatus(m *opensearchv1.GetSyncStatusResponse) {
	var rows []row
	for _, kind := range m.GetKinds() {
		states := kind.GetStates()
		if len(states) == 0 {
			rows = append(rows, row{cells: []string{kind.GetKind(), "-", "0"}})
		}
		for _, state := range slices.Sorted(maps.Keys(states)) {
			rows = append(rows, row{cells: []string{kind.GetKind(), cmp.Or(state, "not seen yet"), count(states[state], "object")}})
		}
	}
	p.table([]string{"KIND", headState, "OBJECTS"}, rows)
}

// listed is texts in one cell.
func listed(texts []string) string { return cmp.Or(strings.Join(texts, ", "), "-") }
