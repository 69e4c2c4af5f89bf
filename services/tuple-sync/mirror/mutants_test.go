package mirror

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

// mutants are guards that are missing, each against tuples that stay, or are thought to be there, because OpenFGA's list of
// changes was believed too much.
func mutants() map[string]mutant.Mutant {
	return map[string]mutant.Mutant{
		"what is committed late is never found":        {"tail.go", "	if r.copy.owes() {\n", "	if false {\n"},
		"only the present is looked at":                {"changes.go", "		since = since.Add(-late)\n", "		since = since.Add(0)\n"},
		"another history is taken for this one":        {"changes.go", "lost := len(read.missing) > 0", "lost := false"},
		"every look back reads the whole store":        {"changes.go", "			delete(r.missing, c)\n", ""},
		"who writes hides another history":             {"changes.go", "	m.tips = append(m.tips, read.tips...)\n", "	if n := len(read.tips); n > 0 {\n		m.tips = read.tips[n-1:]\n	}\n"},
		"who gives much holds up who takes":            {"reconcile.go", "if r.State.taking(k.owner) {", "if false {"},
		"who gives much holds up who is changed":       {"table.go", "			s.mark(k)\n", "			_ = k\n"},
		"what others take away is not noticed":         {"changes.go", "copied != there", "!copied && there"},
		"what others write is not noticed":             {"changes.go", "copied != there", "copied && !there"},
		"a store that is to go keeps its members":      {"reconcile.go", "	if n.of.ends {\n", "	if false {\n"},
		"a membership leaves who was a member":         {"sync.go", "		p.Reporter.Watch(r.State.members(p.Key.object)...)\n", ""},
		"heirs of a role do not follow it":             {"spread.go", "		s.heirs(path(k.Namespace, k.Name), keys)\n", ""},
		"what an object was is forgotten":              {"table.go", "	for _, o := range t.rows.Gone(k) {", "	for _, o := range t.rows.Gone(k)[:0] {"},
		"a kind that comes back as it was is not":      {"state.go", "	clear(s.judged)\n", ""},
		"the bus is believed":                          {"sync.go", "	if err := r.Confirmer.Confirm(ctx, statements...); err != nil {\n		return err\n	}\n", ""},
		"the bus is believed of bindings":              {"sources.go", "[]confirm.Statement{s.bindings.statement(b)}, s.roles", "[]confirm.Statement{}, s.roles"},
		"the bus is believed of memberships":           {"sources.go", "[]confirm.Statement{s.memberships.statement(m)}", "[]confirm.Statement{}"},
		"the bus is believed of who owns what":         {"sources.go", "slices.Concat(its, parent)", "parent"},
		"a review that failed is done":                 {"changes.go", "	if err != nil || !m.looked(loads, begun, len(tips), read.tips) || !lost {", "	if !m.looked(loads, begun, len(tips), read.tips) || err != nil || !lost {"},
		"half a list is believed to be all":            {"changes.go", "	m.compare(read.is) // As far as it was read: that is not read again.\n", "	if err == nil {\n		m.compare(read.is)\n	}\n"},
		"a finalizer holds up who depends on it":       {"spread.go", "	return r.letGo(ctx, p) // Last: nothing that is taken away waits for it.\n", "	return nil\n"},
		"the bus is believed of roles":                 {"sources.go", ", s.roles.stated(role.Namespace, role.Name), s.stated", ", s.stated"},
		"what belongs to who goes stays his":           {"spread.go", "range kind.ownedBy(ownerIndex(iam.TypeOf(f.object), k.Name)) {", "range kind.ownedBy(\"\") {"},
		"bindings on what comes or goes do not follow": {"spread.go", "	bindings(byTarget, f.object)\n", ""},
		"bindings by the UID of an account stay":       {"spread.go", "			bindings(bySubject, iam.ServiceAccount(string(a.UID)))\n", "			_ = a\n"},
		"bindings of an account that goes stay":        {"spread.go", "		bindings(bySubject, subjectIndex(iamv1alpha1.ServiceAccountKind, \"\", k.Name))\n", ""},
		"what roles gave is remembered for ever":       {"inheritance.go", "s.inherited.from == nil || s.inherited.of != changes", "s.inherited.from == nil"},
		"bindings of a role that goes stay":            {"spread.go", "		bindings(byRole, path(k.Namespace, k.Name))\n", ""},
		"bindings of a user who goes stay":             {"spread.go", "		bindings(bySubject, subjectIndex(iamv1alpha1.UserKind, \"\", k.Name))\n", ""},
		"bindings of a group that goes stay":           {"spread.go", "		bindings(bySubject, subjectIndex(iamv1alpha1.GroupKind, k.Namespace, k.Name))\n", ""},
		"memberships of a user who goes stay":          {"spread.go", "range s.memberships.by(byUser, k.Name) {", "range s.memberships.by(byUser, \"\") {"},
		"who is no subject any more keeps it":          {"reconcile.go", "		if !wanted[e] {\n", "		if !wanted[e] && e.relation != \"u\" {\n"},
		"what a role gave is not taken away":           {"reconcile.go", "		if !wanted[e] {\n", "		if !wanted[e] && e.user != iam.UserType+\":*\" {\n"},
		"what nobody declares stays":                   {"reconcile.go", "		if !wanted[e] {\n", "		if !wanted[e] && len(wanted) > 0 {\n"},
		"a write is known before it is done":           {"sync.go", "	case err != nil:\n		r.copy.doubt(p.Key.object)\n		return err\n	}\n	p.Reporter.Count(n.store)\n	r.copy.wrote(n.of.storeID, p.Key.object, nil, remove)", "	}\n	p.Reporter.Count(n.store)\n	r.copy.wrote(n.of.storeID, p.Key.object, nil, remove)"},
		"a store of others is taken over":              {"reconcile.go", "!known || !r.homeOf(store).adopted", "!known"},
		"a store is taken over as the bus says":        {"adoption.go", "		if err := r.Confirmer.Confirm(ctx, storeSays(store)); err != nil {\n", "		if err := error(nil); err != nil {\n"},
		"whoever takes our name off stops us":          {"adoption.go", "if r.homeOf(store).adopted && plan.Declares(store.Value, owner) {", "if false {"},
		"what had no store is never looked at":         {"tail.go", "missed || r.swept", "missed && false || r.swept"},
		"there is something without a store":           {"report.go", "if why := r.obstacle(); why != nil {", "if why := r.obstacle(); why != nil && false {"},
		"what others say is corrected":                 {"report.go", "ready != nil && !plan.Ours(ready.Reason) {", "ready != nil && false {"},
		"what was in step is so for ever":              {"copy.go", "return ok && m.settled == n.moment && m.storeID", "return ok && m.storeID"},
		"what was in step is kept for ever":            {"copy.go", "		m.steady, m.settled = map[string]struct{}{}, at\n", "		m.settled = at\n"},
		"what was taken away is there by the copy":     {"copy.go", "	delete(m.steady, object)\n	if len(has) == 0 {", "	if len(has) == 0 {"},
		"in doubt all is in step":                      {"copy.go", "	m.doubted[object] = m.raised\n	delete(m.steady, object)\n", "	m.doubted[object] = m.raised\n"},
		"what is being written is not there":           {"copy.go", " || m.engaged[object] > 0", ""},
		"what had a name long ago is not there":        {"spread.go", " || s.mayHold(object) {", " {"},
		"all that had a name is looked at":             {"spread.go", "if i < recent || s.mayHold == nil || s.mayHold(object) {", "if true {"},
		"whatever it holds, what had a name rests":     {"spread.go", "resting && i < recent", "resting"},
		"nobody rests who had a name":                  {"spread.go", "if resting && len(all) > recent {", "if false {"},
		"what is declared anew is what it was":         {"table.go", "	t.rows.Alike(t.alike, ", "	t.rows.Alike(func(_, _ *T) bool { return true }, "},
		"whose status it is counts as nothing":         {"table.go", "[]any{declared, recorded})", "[]any{declared, recordedWas, recorded}[:2])"},
		"who changes later is not spread":              {"spread.go", "*asked == n.moment {", "true {"},
		"a target whose owner nobody looks at":         {"targets.go", "	return len(f.target.Owners) > 0 || s.bindings", "	return s.bindings"},
		"a target with bindings is nobody's":           {"targets.go", "|| s.bindings.rows.Count(byTarget, f.object) > 0 ||", "||"},
		"a target that owns something is nobody's":     {"targets.go", "slices.ContainsFunc(s.all(), func(k followed) bool { return k.owns(owner) })", "owner == \"\""},
		"a target that has something is nobody's":      {"targets.go", "r.copy.size(f.object) == 0 && !r", "!r"},
		"a target that goes is nobody's":               {"targets.go", "	return f.meta == nil || r.copy", "	return f.meta == nil || r.State.isGone(k) || r.copy"},
		"a target that goes is remembered for ever":    {"reconcile.go", "		r.State.spreading(k) // There is nothing to spread.\n", ""},
		"a target that replaces another is not urgent": {"table.go", "was.UID != is.UID || was.Value", "was.Value"},
		"what is being deleted is there":               {"table.go", "		return t.cfg.target(o.Value)\n", "		target, _ := t.cfg.target(o.Value)\n		return target, true\n"},
		"owners come back without what is theirs":      {"tail.go", "	for _, object := range r.State.owned() {", "	for _, object := range r.State.owned()[:0] {"},
		"who belongs to what is known late does not":   {"targets.go", "range kind.kin(typ) {", "range kind.kin(typ)[:0] {"},
		"what is not known any more stays":             {"targets.go", "		if told.types[iam.TypeOf(object)] {", "		if false {"},
		"a restored store is read and forgotten":       {"load.go", "!maps.Equal(held[object], m.objects[object])", "false"},
	}
}

func TestEveryMutantIsOneOfTheCodeAsItIs(t *testing.T) { mutant.Apply(t, ".", mutants()) }
