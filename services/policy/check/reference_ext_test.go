package check_test

import (
	"slices"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// referenceChecker decides about policies by the algorithm in the description of the language, step by step and without
// optimization. slip selects one of the mistakes that are easily made with it.
type referenceChecker struct {
	slip    string
	types   map[string]syntax.ResourceType
	unions  map[string]syntax.Union
	actions map[string]bool
	// bound holds the bindings by type and action, targets the expanded targets by type and relation.
	bound   map[[2]string]syntax.Binding
	targets map[[2]string][]string
	valid   bool
}

func (r *referenceChecker) assert(ok bool) { r.valid = r.valid && ok }

func (r *referenceChecker) does(slip string) bool { return r.slip == slip }

func accepts(documents []*syntax.Document, slip string) bool {
	r := &referenceChecker{
		slip: slip, types: map[string]syntax.ResourceType{}, unions: map[string]syntax.Union{}, actions: map[string]bool{},
		bound: map[[2]string]syntax.Binding{}, targets: map[[2]string][]string{}, valid: true,
	}
	var all syntax.Document
	for _, d := range documents {
		all.ResourceTypes = append(all.ResourceTypes, d.ResourceTypes...)
		all.Unions = append(all.Unions, d.Unions...)
		all.Actions = append(all.Actions, d.Actions...)
		all.Bindings = append(all.Bindings, d.Bindings...)
	}
	r.declare(all)
	r.expand(all)
	for _, u := range r.unions {
		r.checkUnion(u)
	}
	for _, t := range r.types {
		r.checkType(t)
	}
	for key, b := range r.bound {
		r.checkBinding(key[0], b)
	}
	r.checkNames()
	return r.valid
}

func (r *referenceChecker) declare(all syntax.Document) {
	prefixes := map[string]bool{}
	r.assert(len(all.ResourceTypes) > 0)
	for _, t := range all.ResourceTypes {
		_, twice := r.types[t.Name.Text]
		r.assert(!twice || r.does("2: duplicates are overwritten"))
		r.assert(policy.IsTypeName(t.Name.Text) && policy.IsIDPrefix(t.IDPrefix.Text) && (!prefixes[t.IDPrefix.Text] || twice) ||
			r.does("18: names are not checked"))
		prefixes[t.IDPrefix.Text] = true
		r.types[t.Name.Text] = t
	}
	for _, u := range all.Unions {
		_, twice := r.unions[u.Name.Text]
		_, isType := r.types[u.Name.Text]
		r.assert(!twice && !isType || r.does("2: duplicates are overwritten"))
		r.assert(policy.IsTypeName(u.Name.Text))
		r.unions[u.Name.Text] = u
	}
	for _, a := range all.Actions {
		r.assert(!r.actions[a.Name.Text] || r.does("2: duplicates are overwritten"))
		r.assert(policy.IsActionName(a.Name.Text) || r.does("18: names are not checked"))
		r.actions[a.Name.Text] = true
	}
	r.assert(len(all.Actions) == 0 || !r.does("1: the loop has another variable"))
}

func (r *referenceChecker) members(name syntax.Name) []string {
	u, isUnion := r.unions[name.Text]
	if !isUnion || r.does("9: a mapping is looked up among names") {
		return []string{name.Text}
	}
	r.assert(!r.does("3: a union has no targetTypes"))
	var members []string
	for _, m := range u.Members {
		members = append(members, m.Text)
	}
	return members
}

func (r *referenceChecker) expand(all syntax.Document) {
	for _, b := range all.Bindings {
		_, isUnion := r.unions[b.Type.Text]
		r.assert(isUnion || !r.does("7: every binding of a type fails"))
		r.assert(!r.does("14: a binding has no resourceTypeName"))
		for _, t := range r.members(b.Type) {
			key := [2]string{t, b.Action.Text}
			before, twice := r.bound[key]
			_, beforeIsUnion := r.unions[before.Type.Text]
			r.assert(!twice || r.does("6: pairs are never found again") ||
				r.does("7: the branches do not share their pairs") && isUnion != beforeIsUnion)
			r.bound[key] = b
		}
	}
	for _, t := range r.types {
		for _, rel := range t.Relationships {
			for _, target := range rel.Targets {
				key := [2]string{t.Name.Text, rel.Relation.Text}
				if r.does("10: the expanded targets are dropped") {
					r.targets[key] = append(r.targets[key], target.Text)
				} else {
					r.targets[key] = append(r.targets[key], r.members(target)...)
				}
			}
		}
	}
}

func unique(names []syntax.Name) bool {
	var texts []string
	for _, n := range names {
		texts = append(texts, n.Text)
	}
	slices.Sort(texts)
	return len(slices.Compact(texts)) == len(names)
}

func (r *referenceChecker) checkUnion(u syntax.Union) {
	r.assert(len(u.Members) > 0 || r.does("18: empty lists are not checked"))
	r.assert(unique(u.Members))
	for _, m := range u.Members {
		_, isType := r.types[m.Text]
		_, isUnion := r.unions[m.Text]
		r.assert(isType && !r.does("12: members must be unions") || isUnion && r.does("12: members must be unions"))
	}
}

func (r *referenceChecker) checkType(t syntax.ResourceType) {
	var relations []syntax.Name
	for _, rel := range t.Relationships {
		relations = append(relations, rel.Relation)
		r.assert(policy.IsRelationName(rel.Relation.Text) || r.does("18: names are not checked"))
		r.assert(len(rel.Targets) > 0 || r.does("18: empty lists are not checked"))
		r.assert(unique(rel.Targets))
		for _, target := range r.targets[[2]string{t.Name.Text, rel.Relation.Text}] {
			_, isType := r.types[target]
			r.assert(isType && !r.does("13: a mapping is looked up among types"))
		}
	}
	r.assert(unique(relations) || r.does("18: duplicates inside are not checked"))
}

func (r *referenceChecker) checkBinding(typeName string, b syntax.Binding) {
	_, isType := r.types[typeName]
	r.assert(isType && r.actions[b.Action.Text])
	r.assert(len(b.Conditions) > 0 || r.does("18: empty lists are not checked"))
	var seen []syntax.Name
	for _, c := range b.Conditions {
		step := c.RelationshipAction
		r.assert(c.RoleBinding && !r.does("15: an empty mapping is false") || step != nil)
		r.assert(!c.RoleBinding || step == nil)
		if step == nil {
			seen = append(seen, syntax.Name{Text: "roleBinding"})
			continue
		}
		seen = append(seen, syntax.Name{Text: step.Relation.Text + " " + step.Action.Text})
		targets, found := r.targets[[2]string{typeName, step.Relation.Text}]
		r.assert(found && !r.does("16: the condition itself has no relation") && r.actions[step.Action.Text])
		action := step.Action.Text
		if r.does("17: the binding's action is looked for on the target") {
			action = b.Action.Text
		}
		for _, target := range targets {
			_, bound := r.bound[[2]string{target, action}]
			r.assert(bound)
		}
	}
	r.assert(unique(seen) || r.does("18: duplicates inside are not checked"))
}

// checkNames checks that no type has a name twice, and checks the type of roles.
func (r *referenceChecker) checkNames() {
	roles := false
	for key, b := range r.bound {
		role := slices.ContainsFunc(b.Conditions, func(c syntax.Condition) bool { return c.RoleBinding })
		roles = roles || role
		_, isRelation := r.targets[key]
		_, roleIsRelation := r.targets[[2]string{key[0], key[1] + "_role"}]
		_, roleIsAction := r.bound[[2]string{key[0], key[1] + "_role"}]
		r.assert(!isRelation && (!role || !roleIsRelation && !roleIsAction) || r.does("18: collisions are not checked"))
	}
	if _, declared := r.types["role"]; roles && declared {
		_, found := r.targets[[2]string{"role", "subject"}]
		r.assert(found)
	}
	_, isRole := r.unions["role"]
	_, isUser := r.unions["user"]
	_, declared := r.types["role"]
	r.assert(!roles || !isRole && (declared || !isUser))
}
