package modeltest

import (
	"regexp"
	"slices"
	"strings"
)

// policyDocument is the decoded content of a PolicyDocument.
type policyDocument struct {
	ResourceTypes []struct {
		Name          string
		Relationships []struct {
			Relation    string
			TargetTypes []struct{ Name string }
		}
	}
	Unions []struct {
		Name          string
		ResourceTypes []struct{ Name string }
	}
	Actions        []struct{ Name string }
	ActionBindings []struct {
		ActionName, TypeName string
		Conditions           []struct {
			RoleBinding        *struct{}
			RelationshipAction *struct{ Relation, ActionName string }
		}
	}
}

// sharedNames holds the names that PolicyDocuments share: unions with their member types, actions, and types.
type sharedNames struct {
	unions         map[string][]string
	actions, types map[string]bool
	role           string // the relation that holds the members of a role
}

// addPolicy adds the actions and union members of a document for which keep returns true.
func (v sharedNames) addPolicy(p policyDocument, keep func(key, member string) bool) {
	for _, u := range p.Unions {
		if _, taken := v.unions[u.Name]; taken {
			continue
		}
		for _, t := range u.ResourceTypes {
			if keep("union "+u.Name, t.Name) {
				v.unions[u.Name] = append(v.unions[u.Name], t.Name)
			}
		}
	}
	for _, a := range p.Actions {
		v.actions[a.Name] = v.actions[a.Name] || keep("action "+a.Name, "")
	}
}

// expandUnion returns the types that a name stands for: the existing members of a union, or the name itself.
func (v sharedNames) expandUnion(name string) []string {
	members, union := v.unions[name]
	if !union {
		return []string{name}
	}
	return slices.DeleteFunc(slices.Clone(members), func(t string) bool { return !v.types[t] })
}

// definitionsIn returns the definitions that the document adds to the model. It also returns its unions, with their
// existing members, and its actions.
func (p policyDocument) definitionsIn(v sharedNames) map[string]string {
	all := map[string]string{}
	for _, t := range p.ResourceTypes {
		all[t.Name] = "type " + t.Name
		for _, r := range t.Relationships {
			for _, target := range r.TargetTypes {
				for _, name := range v.expandUnion(target.Name) {
					addTerm(all, t.Name+"#"+r.Relation, "["+name+"]")
				}
			}
		}
	}
	for _, b := range p.ActionBindings {
		for _, t := range v.expandUnion(b.TypeName) {
			if !v.actions[b.ActionName] {
				continue
			}
			for _, c := range b.Conditions {
				if c.RoleBinding != nil {
					addTerm(all, t+"#"+b.ActionName, b.ActionName+"_role")
					addTerm(all, t+"#"+b.ActionName+"_role", "["+v.role+"]")
				} else {
					addTerm(all, t+"#"+b.ActionName, c.RelationshipAction.ActionName+" from "+c.RelationshipAction.Relation)
				}
			}
		}
	}
	for _, u := range p.Unions {
		for _, t := range u.ResourceTypes {
			if v.types[t.Name] {
				addTerm(all, "union "+u.Name, t.Name)
			}
		}
	}
	for _, a := range p.Actions {
		all["action "+a.Name] = "action"
	}
	return all
}

// bindsActionTwice reports whether the document binds an action to a type twice, for example by name and by a union.
// The policy language refuses this.
func (p policyDocument) bindsActionTwice(v sharedNames) bool {
	bound := map[string]bool{}
	for _, b := range p.ActionBindings {
		for _, t := range v.expandUnion(b.TypeName) {
			if bound[t+"#"+b.ActionName] {
				return true
			}
			bound[t+"#"+b.ActionName] = true
		}
	}
	return false
}

// addTerm adds a term to the text of the relation key.
func addTerm(all map[string]string, key, term string) {
	parts := append(splitTerms(all[key]), term)
	slices.Sort(parts)
	all[key] = strings.Join(slices.Compact(parts), or)
}

// splitTerms returns the terms in the text of a relation.
func splitTerms(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, or)
}

// referencedNames returns the names that the document refers to. Each is a type, a union, or "action NAME".
func (p policyDocument) referencedNames() (names []string) {
	for _, t := range p.ResourceTypes {
		for _, r := range t.Relationships {
			for _, target := range r.TargetTypes {
				names = append(names, target.Name)
			}
		}
	}
	for _, u := range p.Unions {
		for _, t := range u.ResourceTypes {
			names = append(names, t.Name)
		}
	}
	for _, b := range p.ActionBindings {
		names = append(names, b.TypeName, "action "+b.ActionName)
	}
	return names
}

var word = regexp.MustCompile(`\w+`)

// isMentioned reports whether a text still contains the names in a definition's key. A key names a union, an action, a
// type or a relation. For a relation, the text must contain the relation, and its type or a union with this type.
func (v sharedNames) isMentioned(text, key string) bool {
	words := word.FindAllString(text, -1)
	key = strings.TrimPrefix(strings.TrimPrefix(key, "union "), "action ")
	typ, relation, isRelation := strings.Cut(strings.TrimSuffix(key, "_role"), "#")
	if isRelation && !slices.Contains(words, relation) {
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool { return w == typ || isRelation && slices.Contains(v.unions[w], typ) })
}
