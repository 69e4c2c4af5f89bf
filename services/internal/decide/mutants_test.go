//go:build mutants

package decide

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

// mutants are ways in which an index can be wrong that is told of changes one by one.
func mutants() map[string]mutant.Mutant {
	return map[string]mutant.Mutant{
		"what is in deletion counts":                         {"index.go", "return o != nil && o.GetDeletionTimestamp() == nil", "return o != nil"},
		"values of a key are never taken away":               {"index.go", "	delete(m[k], v)\n", ""},
		"roles are not refreshed by registrations":           {"kind.go", "	x.inherit(slices.Collect(maps.Values(x.roles)))\n", ""},
		"a permission counts where it cannot be held":        {"decide.go", "known && k != nil && k.held.has(number)", "known && k != nil"},
		"permissions of kinds below cannot be held":          {"kind.go", "x.bitsOf(k.AtAndBelow())", "x.bitsOf(k.Permissions)"},
		"a permission is another's beyond the first word":    {"kind.go", "b[n/word]&(1<<(n%word)) != 0", "b[0]&(1<<(n%word)) != 0"},
		"roles give nothing that they inherit":               {"role.go", "				grew = r.effective.add(inherited.effective) || grew\n", "				_ = inherited\n"},
		"heirs keep what a role no longer gives":             {"role.go", "		for heir := range x.heirs[roles[i].Ref] {", "		for heir := range x.heirs[Ref{}] {"},
		"heirs of heirs do not follow":                       {"role.go", "			if grew {\n", "			if false {\n"},
		"links to what was inherited stay":                   {"role.go", "		x.heirs.remove(inherited, r.Ref)\n", "		_ = inherited\n"},
		"a role of no namespace is in none":                  {"role.go", "cmp.Or(ref.Namespace, namespace)", `cmp.Or(ref.Namespace, "n1")`},
		"a role that is gone gives what it gave":             {"role.go", "r.declared, r.included, r.inherits = alive(declared), nil, nil", "r.declared, r.inherits = alive(declared), nil"},
		"a role is forgotten that bindings name":             {"role.go", "!r.declared && r.grants == 0", "!r.declared"},
		"another of the name is meant":                       {"subject.go", "return a.uid == uid && a.acts()", "return a.acts()"},
		"who is inactive acts":                               {"subject.go", `return a.uid != "" && !a.inactive`, `return a.uid != ""`},
		"another group of the name is meant":                 {"subject.go", "return x.groups[p.Ref] == p.UID", "return true"},
		"a membership of another user of the name counts":    {"subject.go", "x.users[m.user].is(m.first.UID)", "x.users[m.user].acts()"},
		"a membership that was for another name counts":      {"subject.go", "m.first.Name == m.user && x.users", "x.users"},
		"old memberships stay":                               {"subject.go", "		x.membershipsOf.remove(was.user, ref)\n", ""},
		"accounts are mistaken for each other":               {"subject.go", "return Principal{ServiceAccount, Ref{Name: s.Name}, s.UID}, true", "return Principal{CoreServiceAccount, Ref{}, s.UID}, true"},
		"a membership of another user is counted":            {"subject.go", "b := belonging{m.user, m.first.UID, m.group}", "b := belonging{m.user, x.users[m.user].uid, m.group}"},
		"a membership for another name is counted":           {"subject.go", "	if m.first.Name != m.user {\n		return\n", "	if m.first.Name == \"-\" {\n		return\n"},
		"memberships that are gone are counted":              {"subject.go", "		x.count(was, -1)\n", ""},
		"groups of a grant are forgotten":                    {"binding.go", "		if p.Sort == Group {\n", "		if false {\n"},
		"groups of a grant stay":                             {"binding.go", "			delete(g.groups, p)\n", ""},
		"another group of the name has the grant":            {"asker.go", "x.exists(p.Principal) && x.belongs", "x.belongs"},
		"who is in a group is not asked":                     {"asker.go", " && x.belongs(who.user, p.Ref)", ""},
		"who is in few groups is in none":                    {"decide.go", "x.appendGroups(groups[:0], who.user), true", "groups[:0], true"},
		"who has no membership has no grant":                 {"asker.go", "p == nil && who.memberships == 0 || !g.gives(permission)", "who.memberships == 0 || !g.gives(permission)"},
		"who is in many groups is listed":                    {"decide.go", "who.memberships > 0 && who.memberships < len(g.groups)", "who.memberships > 0"},
		"groups of the token do not count":                   {"asker.go", "	for _, name := range s.Groups {", "	for _, name := range s.Groups[:0] {"},
		"who is inactive has what his groups have":           {"asker.go", "u.inactive || x.isInactive(s.Account)", "false"},
		"who is inactive acts when he is deleted":            {"subject.go", "a.inactive = u != nil && u.Status", "a.inactive = alive(u) && u.Status"},
		"a Group is believed to be of the token":             {"subject.go", `strings.Contains(s.Name, ":")`, `strings.Contains(s.Name, "")`},
		"nameless objects are all of their kind":             {"place.go", "s.ResourceRef.Name}}, s.ResourceRef.UID, true", `s.ResourceRef.Name}, All: s.ResourceRef.Name == ""}, s.ResourceRef.UID, true`},
		"bindings on a kind give nothing":                    {"place.go", "	r.add(x.places[Place{Type: k.typ, All: true}])\n", ""},
		"a namespace is no parent":                           {"place.go", `within != nil && namespace != ""`, "false"},
		"a claimed namespace counts for a known object":      {"place.go", "		namespace = object.Namespace\n", ""},
		"another owner of the name is the parent":            {"place.go", "x.isThere(above, owner.UID)", "x.isThere(above, owner.UID) || x.places[above] != nil && x.places[above].target != nil"},
		"an owner in another namespace is the parent":        {"place.go", `[...]string{object.Namespace, ""}`, `[...]string{object.Namespace, "", "n1"}`},
		"an owner that is in no namespace is no parent":      {"place.go", `[...]string{object.Namespace, ""}`, `[...]string{object.Namespace}`},
		"grants on another object stay idle when it comes":   {"place.go", "	for _, idle := range p.idle {", "	for _, idle := range map[string][]*grant{} {"},
		"grants count on when another object comes":          {"place.go", "if t != nil && p.isThere(t.UID) {", "if t != nil && p.target != nil {"},
		"only a few places are walked":                       {"place.go", "	r.far[p] = struct{}{}\n	return true\n", "	return false\n"},
		"another object of the name is the target":           {"place.go", "p.All || p.isThere(uid)", "p.All || p.target != nil"},
		"another object of a trusted kind is the target":     {"place.go", "p.target == nil && p.trusted", "p.trusted"},
		"trusted objects give nothing":                       {"place.go", "(known || p != nil && p.trusted) && !r.add(p)", "known && !r.add(p)"},
		"grants on other objects of the name are one":        {"binding.go", "g.role == r && g.uid == uid", "g.role == r"},
		"one of two bindings takes what both give":           {"holdings.go", "func(one holding) bool { return one.binding == b })", "func(one holding) bool { return one.grant == b.grant })"},
		"one of many bindings takes what all give":           {"holdings.go", "func(other *binding) bool { return other == b })", "func(*binding) bool { return true })"},
		"a binding that is gone gives on":                    {"holdings.go", "	h.few = slices.DeleteFunc(h.few,", "	_ = slices.DeleteFunc(slices.Clone(h.few),"},
		"one of many bindings that is gone gives on":         {"holdings.go", "	if len(h.many[b.grant]) == 0 {\n		delete(h.many, b.grant)\n	}\n", "	h.many[b.grant] = append(h.many[b.grant], b)\n"},
		"who has much has nothing of before":                 {"holdings.go", "		for _, one := range h.few {\n			h.many", "		for _, one := range h.few[:0] {\n			h.many"},
		"another grant is had":                               {"holdings.go", "one.grant == g {", "one.grant != nil {"},
		"another binding of the name is the target":          {"place.go", "known.UID == t.UID {", "known.UID != \"\" {"},
		"owners of a binding do not count":                   {"place.go", "len(t.Owners) == 0 && there", "there"},
		"a binding on which there is something is no object": {"place.go", "		if t, there := x.objectOf(nil, at); there {\n", "		if t, there := x.objectOf(nil, at); there && false {\n"},
		"a binding is no object":                             {"place.go", `b != nil && b.uid != ""`, "false"},
		"all bindings are one":                               {"place.go", "p == nil && at.Type == bindingType && !at.All", "p == nil && !at.All"},
		"a binding that changes keeps its subjects":          {"binding.go", "		x.unbind(was)\n", "		_ = was\n"},
		"a binding's own namespace is not its role's":        {"binding.go", "Ref{cmp.Or(declared.Spec.RoleRef.Namespace, namespace)", "Ref{cmp.Or(declared.Spec.RoleRef.Namespace, \"n1\")"},
		"bindings are taken from others of their grant":      {"binding.go", "g.bindings[b.index], last.index = last, b.index", "_ = last"},
		"any role has what one has":                          {"binding.go", "return g.role.effective.has(permission)", "return true"},
		"groups are listed without their members":            {"who.go", "maps.Keys(x.membershipsIn[p.Ref])", "maps.Keys(x.membershipsIn[Ref{}])"},
		"absent subjects are listed":                         {"who.go", "			if !x.exists(p.Principal) {\n", "			if false {\n"},
		"a role on all of a kind is on what is not there":    {"decide.go", " && (!q.There || !x.isAbsent(q))", ""},
		"nothing that a request says of parents counts":      {"decide.go", `q.Parent.Name != "" && `, "false && "},
		"a known object is of what the request says":         {"decide.go", `(q.Name == "" || x.isAbsent(q))`, "true"},
		"whatever a request says is a parent":                {"decide.go", "k.isBelow(q.Parent.Type)", "x.kinds[q.Parent.Type] != nil"},
		"absent targets are listed":                          {"what.go", "k != nil && g.at.counts(g.uid)", "k != nil"},
		"nobody is asked for what a binding gives":           {"missing.go", "x.lack(who, x.roles[role].effective, k.held,", "x.lack(who, nil, k.held,"},
		"a role that is only named is there":                 {"missing.go", "r == nil || !r.declared {", "r == nil {"},
		"what nobody registers is had":                       {"missing.go", "			return Missing{role, name, at}, true\n", "			continue\n"},
		"what is had on another of the name is had on it":    {"missing.go", "there && t.UID != uid {", "false {"},
		"whoever joins has what a group has":                 {"missing.go", "if !g.at.counts(g.uid) {", "if g.at.counts(g.uid) {"},
		"what somebody has anywhere is had everywhere":       {"missing.go", "return one.grants.has(g) != nil })", "return one != nil })"},
		"owners bring nothing from above them":               {"missing.go", "		for at := range above.all {", "		for at := range (&reach{}).all {"},
		"what somebody has is gained":                        {"missing.go", "for g := range p.among(grants) {\n			all.add", "for g := range p.among(nil) {\n			all.add"},
	}
}

func TestEveryMutantDies(t *testing.T) {
	t.Setenv("WORLDS", "200")
	mutant.Kill(t, ".", mutants(), []string{"."})
}
