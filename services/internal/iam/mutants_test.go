package iam

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

// mutants are guards that are missing, each against a fault that authorization by objects like these has had somewhere.
func mutants() map[string]mutant.Mutant {
	return map[string]mutant.Mutant{
		"another user of the name has the grants":          {"subject.go", "	case string(u.UID) != uid:\n", "	case false:\n"},
		"another account of the name has the grants":       {"subject.go", "	case string(a.UID) != s.UID:\n", "	case false:\n"},
		"another group of the name has the grants":         {"subject.go", "	case string(g.UID) != s.UID:\n", "	case false:\n"},
		"another object of the name is the target":         {"tuple.go", "found.UID != selector.ResourceRef.UID", `found.UID == "-"`},
		"another owner of the name is the parent":          {"objects.go", `owner.UID != "" && owner.UID == t.UID`, "true"},
		"a project is of whom another was recorded for":    {"objects.go", "first != nil && first.Name == owner.Name", "first != nil"},
		"a reference to another organization is no matter": {"objects.go", `			owner.UID = "" // Whoever`, `			owner.Name += "" // Whoever`},
		"another user of the name is the member":           {"subject.go", "return o.user(u.Name, first.UID)", "return o.user(u.Name, string(u.UID))"},
		"a membership of another user counts for this one": {"subject.go", "first == nil || first.Name != u.Name", "first == nil"},
		"a membership counts before it is recorded":        {"subject.go", "	case first == nil || first.Name != u.Name:\n		return \"\", iamv1alpha1.UIDMissing\n", "	case first == nil:\n		return o.user(u.Name, string(u.UID))\n"},
		"who has changed is a newcomer":                    {"rank.go", "		return edited\n", "		return newcomer\n"},
		"whoever has any kind holds what he claims":        {"rank.go", "record == nil || record.Group != Group(p.Spec.ServiceRef.Name) || record.Kind != p.Spec.Kind || record.Plural != p.Spec.Plural", "record == nil"},
		"a record of another group counts":                 {"rank.go", "record.Group != Group(p.Spec.ServiceRef.Name) || ", ""},
		"a record of another plural counts":                {"rank.go", " || record.Plural != p.Spec.Plural", ""},
		"a kind is free when it is claimed no more":        {"rank.go", "cmp.Or(r.types[typ], p.Name), ", "\"\", "},
		"a plural is free when it is claimed no more":      {"rank.go", "cmp.Or(r.resources[resource], p.Name)\n", "\"\"\n"},
		"a link is forgotten when it is claimed no more":   {"rank.go", "		r.parents[typ] = append(r.parents[typ], record.Parents...)\n", ""},
		"a relation is free when it is claimed no more":    {"rank.go", "cmp.Or(r.relations[relation], permission)", "\"\""},
		"a new link comes before one that is held":         {"registry.go", "		case holds[typ] != held, slices", "		case !held && holds != nil, slices"},
		"a new permission comes before one that is held":   {"registry.go", "		case holds[permission] != held, r.", "		case !held && holds != nil, r."},
		"a record says that there are all parents":         {"rank.go", "	for _, parent := range k.Parents {\n		r.Parents", "	for _, parent := range k.children {\n		r.Parents"},
		"who had no room is there":                         {"registry.go", "		case hasNoRoom(p):\n", "		case false:\n"},
		"a kind is there without its type":                 {"registry.go", "		case has(Type(p.Spec.ServiceRef.Name, p.Spec.Kind)):\n", "		default:\n"},
		"a kind is another's when its type is meant":       {"registry.go", "register(in, reserve(all))", "register(in, reserve(in))"},
		"a project belongs to other organizations, too":    {"objects.go", "		return o.Type == owner.Type\n", "		return o.Type == owner.Type && o.Name == owner.Name\n"},
		"who is inactive acts":                             {"subject.go", "u.Status.State == iamv1alpha1.Inactive", "false"},
		"an account that is inactive acts":                 {"subject.go", "a.Spec.State == iamv1alpha1.Inactive", "false"},
		"who is taken for another account acts":            {"subject.go", "o.Inactive != nil && o.Inactive(subject) {", "false {"},
		"who is inactive has what his groups have":         {"question.go", " || o.Inactive(q.Subject)", ""},
		"a binding in deletion acts":                       {"tuple.go", "return b.DeletionTimestamp == nil && o.TargetReason", "return o.TargetReason"},
		"a role in deletion acts":                          {"objects.go", "r != nil && r.DeletionTimestamp == nil", "r != nil"},
		"a user in deletion acts":                          {"subject.go", "u.DeletionTimestamp != nil:\n		return \"\", iamv1alpha1.NotFound\n	case string(u.UID)", "false:\n		return \"\", iamv1alpha1.NotFound\n	case string(u.UID)"},
		"a target in deletion counts":                      {"objects.go", "return t, m.DeletionTimestamp == nil", "return t, true"},
		"a kind in deletion counts":                        {"rank.go", "return p.DeletionTimestamp != nil })", "return false })"},
		"inherited roles give nothing":                     {"role.go", "		s.take(w.found[other])\n", ""},
		"roles that inherit each other are not one":        {"role.go", "			first = min(first, w.at[other])\n", "			_ = other\n"},
		"roles that inherit each other give their own":     {"role.go", "all.permissions, all.missing = append(all.permissions, s.permissions...), append(all.missing, s.missing...)", "all.permissions, all.missing = s.permissions, s.missing"},
		"what gives nothing is kept, however much":         {"role.go", "return !known && idle > mostIdle", "return false"},
		"what nobody registered once nobody ever has":      {"role.go", " || i.registry != o.Registry {", " {"},
		"inherited roles are of the first namespace":       {"role.go", "cmp.Or(ref.Namespace, role.Namespace)", `cmp.Or(ref.Namespace, "n1")`},
		"a permission of a lost collision is given":        {"registry.go", "r.relations[relation] == permission && permission != \"\"", "r.relations[relation] != \"\""},
		"a lost collision is given to whom it was last":    {"registry.go", "		default:\n			r.find(k.Resource, iamv1alpha1.PermissionCollision", "		default:\n			r.relations[relation] = permission\n			r.find(k.Resource, iamv1alpha1.PermissionCollision"},
		"who names an unknown parent is told nothing":      {"registry.go", "			unknown = append(unknown, typ)\n", "			_ = typ\n"},
		"a kind of IAM is taken for another":               {"names.go", "	return miscalled(spec)\n", "	return \"\"\n"},
		"whatever the name, there is such a kind":          {"registry.go", "if why := misnamed(&p.Spec); why != \"\" {", "if why := misnamed(&p.Spec); why != \"\" && false {"},
		"who comes second has the kind":                    {"registry.go", "r.rival(p, typ, resource); other != \"\" {", "r.rival(p, typ, resource); other == p.Name {"},
		"kinds may be their own ancestors":                 {"registry.go", "case r.leads(typ, k.Type, !held, map[string]bool{}):", "case false:"},
		"the younger of two claims wins":                   {"rank.go", "a.CreationTimestamp.Compare(b.CreationTimestamp.Time)", "b.CreationTimestamp.Compare(a.CreationTimestamp.Time)"},
		"incumbents do not stay":                           {"rank.go", "cmp.Compare(incumbency(a), incumbency(b))", "0"},
		"every role gives every permission":                {"model.go", "intersection(computed(subjectRelation), from(relation, roleRelation))", "computed(subjectRelation)"},
		"bindings on a kind give nothing":                  {"model.go", ", from(relation, rootRelation)}", "}"},
		"bindings on a parent give nothing":                {"model.go", "		if len(k.Parents) > 0 {\n			ways", "		if false {\n			ways"},
		"bindings on all of a parent's kind give nothing":  {"question.go", "			o.link(c, parent, above, \"\", linked)\n", "			_ = parent\n"},
		"a namespace is no parent":                         {"question.go", `parent.Type == Type("", "Namespace") && namespace != ""`, "false"},
		"a claimed namespace counts for a known object":    {"question.go", "		namespace = found.Namespace\n", "		_ = namespace\n"},
		"an owner counts that is no registered parent":     {"objects.go", "return p.Type == owner.Type })", "return true })"},
		"an owner in another namespace is the parent":      {"objects.go", "[]string{object.Namespace, \"\"}", "[]string{object.Namespace, \"\", \"n1\"}"},
		"names are not escaped":                            {"id.go", "if !strings.ContainsFunc(part, odd) {", "if true {"},
		"namespaces share their objects":                   {"id.go", `if namespace != "" {`, `if namespace == "-" {`},
		"users and accounts share their names":             {"id.go", `object(UserType, "sa", uid)`, `object(UserType, "u", uid)`},
		"a subject gets no tuple beside another":           {"tuple.go", "tuples = append(tuples, Tuple{subject, subjectRelation, grant})", "tuples = append(tuples[:1], Tuple{subject, subjectRelation, grant})"},
		"one binding of several counts":                    {"tuple.go", "		if !o.acts(b) {\n			continue", "		if !o.acts(b) || len(tuples) > 0 {\n			continue"},
		"a permission counts where it cannot be held":      {"question.go", "!known || !slices.Contains(q.Kind.AtAndBelow(), q.Permission)", "!known"},
		"groups of the token are not asked about":          {"question.go", "if granted(group) {", "if false {"},
	}
}

func TestEveryMutantIsOneOfTheCodeAsItIs(t *testing.T) { mutant.Apply(t, ".", mutants()) }
