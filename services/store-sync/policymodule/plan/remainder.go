package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/policy"
)

// restrictToMentioned returns a text without the types, relations, unions, actions and bindings that another text never
// mentions. It returns nil if either text is nil, or if nothing is left. A binding on a union stays for each member on
// which the other text also binds the action. A binding on a type stays if the other text binds the action on a union
// with this type. The map unions gives the members of each union; a union that the other text declares has its members
// there.
func restrictToMentioned(text, to *iaplv1alpha1.Policy, unions map[string][]iaplv1alpha1.Named) *iaplv1alpha1.Policy {
	if text == nil || to == nil {
		return nil
	}
	m := collectMentionedNames(to)
	gone := func(names map[string]bool, name string) bool { return !names[name] }
	rest := text.DeepCopy()
	rest.ResourceTypes = slices.DeleteFunc(rest.ResourceTypes, func(t iaplv1alpha1.ResourceType) bool { return gone(m.types, t.Name) })
	for i := range rest.ResourceTypes {
		t := &rest.ResourceTypes[i]
		t.Relationships = slices.DeleteFunc(t.Relationships, func(r iaplv1alpha1.Relationship) bool { return gone(m.relations, r.Relation) })
	}
	rest.Unions = slices.DeleteFunc(rest.Unions, func(u iaplv1alpha1.Union) bool { return gone(m.types, u.Name) })
	rest.Actions = slices.DeleteFunc(rest.Actions, func(a iaplv1alpha1.Action) bool { return gone(m.actions, a.Name) })
	declared := maps.Clone(unions)
	maps.Copy(declared, unionMembers([]*iaplv1alpha1.Policy{to}))
	rest.ActionBindings = nil
	for _, b := range text.DeepCopy().ActionBindings {
		if m.bindings[bindingName(b)] {
			rest.ActionBindings = append(rest.ActionBindings, b)
			continue
		}
		for _, typ := range boundTypes(b, unions) {
			if slices.ContainsFunc(to.ActionBindings, func(o iaplv1alpha1.ActionBinding) bool {
				return o.ActionName == b.ActionName && slices.Contains(boundTypes(o, declared), typ)
			}) {
				narrowed := iaplv1alpha1.ActionBinding{ActionName: b.ActionName, TypeName: typ.Name, Conditions: b.Conditions}
				rest.ActionBindings = append(rest.ActionBindings, narrowed)
			}
		}
	}
	return nilIfEmpty(rest)
}

// boundTypes returns the types to which a binding applies: the members of its union, or its type.
func boundTypes(b iaplv1alpha1.ActionBinding, unions map[string][]iaplv1alpha1.Named) []iaplv1alpha1.Named {
	if members, union := unions[b.TypeName]; union {
		return members
	}
	return []iaplv1alpha1.Named{{Name: b.TypeName}}
}

// nilIfEmpty returns nil for an empty text.
func nilIfEmpty(text *iaplv1alpha1.Policy) *iaplv1alpha1.Policy {
	if equality.Semantic.DeepEqual(text, &iaplv1alpha1.Policy{}) {
		return nil
	}
	return text
}

// mentionedNames holds the names in a text, whether it declares them or refers to them.
type mentionedNames struct{ types, relations, actions, bindings map[string]bool }

func collectMentionedNames(p *iaplv1alpha1.Policy) mentionedNames {
	m := mentionedNames{types: map[string]bool{}, relations: map[string]bool{}, actions: map[string]bool{}, bindings: map[string]bool{}}
	for _, t := range p.ResourceTypes {
		m.types[t.Name] = true
		for _, r := range t.Relationships {
			m.relations[r.Relation] = true
			m.addTypeNames(r.TargetTypes)
		}
	}
	for _, u := range p.Unions {
		m.types[u.Name] = true
		m.addTypeNames(u.ResourceTypes)
	}
	for _, a := range p.Actions {
		m.actions[a.Name] = true
	}
	for _, b := range p.ActionBindings {
		m.types[b.TypeName], m.actions[b.ActionName], m.bindings[bindingName(b)] = true, true, true
		for _, c := range b.Conditions {
			if c.RelationshipAction != nil {
				m.relations[c.RelationshipAction.Relation], m.actions[c.RelationshipAction.ActionName] = true, true
			}
		}
	}
	return m
}

func (m mentionedNames) addTypeNames(types []iaplv1alpha1.Named) {
	for _, t := range types {
		m.types[t.Name] = true
	}
}

// bindingName returns the name of a binding.
func bindingName(b iaplv1alpha1.ActionBinding) string { return b.ActionName + " " + b.TypeName }

// elementNameAt returns the name of the type, union, action or binding at a path.
func elementNameAt(p *iaplv1alpha1.Policy, path string) string {
	var list string
	var i int
	if _, err := fmt.Sscanf(strings.ReplaceAll(path, "[", " "), "spec.%s %d", &list, &i); err != nil {
		return ""
	}
	switch list {
	case "resourceTypes":
		return p.ResourceTypes[i].Name
	case "unions":
		return p.Unions[i].Name
	case "actions":
		return p.Actions[i].Name
	case "actionBindings":
		return bindingName(p.ActionBindings[i])
	default:
		return ""
	}
}

// withoutFaultyElements returns a text without the elements of findings: the smallest element around each. It returns nil if nothing
// is left.
func withoutFaultyElements(text *iaplv1alpha1.Policy, findings policy.Diagnostics) *iaplv1alpha1.Policy {
	gone := map[string]bool{}
	for _, d := range findings {
		gone[d.Path[:strings.LastIndexByte(d.Path, ']')+1]] = true
	}
	if gone[""] { // A finding is about the whole document.
		return nil
	}
	return removeElements(text, gone)
}

// commonElements returns a text without the elements that another text lacks. A binding of both keeps its conditions.
func commonElements(text, other *iaplv1alpha1.Policy) *iaplv1alpha1.Policy {
	if text == nil || other == nil {
		return nil
	}
	has, gone := elementSetOf(other), map[string]bool{}
	walkElements(text, func(path string, parts ...string) {
		if parts[0] != "condition" && !has[strings.Join(parts, "\x00")] {
			gone[path] = true
		}
	})
	return removeElements(text, gone)
}

// unionMembers returns the members of the unions in some texts.
func unionMembers(texts []*iaplv1alpha1.Policy) map[string][]iaplv1alpha1.Named {
	members := map[string][]iaplv1alpha1.Named{}
	for _, text := range texts {
		if text == nil {
			continue
		}
		for _, u := range text.Unions {
			members[u.Name] = u.ResourceTypes
		}
	}
	return members
}

// expandUnionTargets returns a text with the members of each union that is a target here and not in the other text. A
// member that both texts lead to is then common to them.
func expandUnionTargets(text, other *iaplv1alpha1.Policy, unions map[string][]iaplv1alpha1.Named) *iaplv1alpha1.Policy {
	if text == nil || other == nil {
		return text
	}
	has, text := elementSetOf(other), text.DeepCopy()
	for _, t := range text.ResourceTypes {
		for j, r := range t.Relationships {
			var targets []iaplv1alpha1.Named
			for _, target := range r.TargetTypes {
				names := []iaplv1alpha1.Named{target}
				if members, union := unions[target.Name]; union && !has[strings.Join([]string{"target", t.Name, r.Relation, target.Name}, "\x00")] {
					names = members
				}
				targets = append(targets, slices.DeleteFunc(slices.Clone(names), func(n iaplv1alpha1.Named) bool { return slices.Contains(targets, n) })...)
			}
			t.Relationships[j].TargetTypes = targets
		}
	}
	return text
}

// removeElements returns a text without the elements at some paths, or nil if nothing is left.
func removeElements(text *iaplv1alpha1.Policy, gone map[string]bool) *iaplv1alpha1.Policy {
	return nilIfEmpty(&iaplv1alpha1.Policy{
		ResourceTypes:  remainingElements(text.ResourceTypes, "spec.resourceTypes", gone),
		Unions:         remainingElements(text.Unions, "spec.unions", gone),
		Actions:        remainingElements(text.Actions, "spec.actions", gone),
		ActionBindings: remainingElements(text.ActionBindings, "spec.actionBindings", gone),
	})
}

// remainingElements returns the elements of a list that are not gone, without their own elements that are.
func remainingElements[T any](list []T, path string, gone map[string]bool) []T {
	var left []T
	for i, element := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if gone[at] {
			continue
		}
		switch e := any(&element).(type) {
		case *iaplv1alpha1.ResourceType:
			e.Relationships = remainingElements(e.Relationships, at+".relationships", gone)
		case *iaplv1alpha1.Relationship:
			e.TargetTypes = remainingElements(e.TargetTypes, at+".targetTypes", gone)
		case *iaplv1alpha1.Union:
			e.ResourceTypes = remainingElements(e.ResourceTypes, at+".resourceTypes", gone)
		case *iaplv1alpha1.ActionBinding:
			e.Conditions = remainingElements(e.Conditions, at+".conditions", gone)
		}
		left = append(left, element)
	}
	return left
}

// includesAllElements reports whether a text has all elements of another one.
func includesAllElements(text, other *iaplv1alpha1.Policy) bool {
	if text == nil || other == nil {
		return other == nil
	}
	has := elementSetOf(text)
	for e := range elementSetOf(other) {
		if !has[e] {
			return false
		}
	}
	return true
}

// elementSetOf returns all elements of a text, each identified by its content.
func elementSetOf(p *iaplv1alpha1.Policy) map[string]bool {
	all := map[string]bool{}
	walkElements(p, func(_ string, parts ...string) { all[strings.Join(parts, "\x00")] = true })
	return all
}

// walkElements visits the elements of a text, with the path and the content of each.
func walkElements(p *iaplv1alpha1.Policy, visit func(path string, parts ...string)) {
	at := func(format string, indexes ...any) string { return fmt.Sprintf("spec."+format, indexes...) }
	for i, t := range p.ResourceTypes {
		visit(at("resourceTypes[%d]", i), "type", t.Name)
		for j, r := range t.Relationships {
			for k, target := range r.TargetTypes {
				visit(at("resourceTypes[%d].relationships[%d].targetTypes[%d]", i, j, k), "target", t.Name, r.Relation, target.Name)
			}
		}
	}
	for i, u := range p.Unions {
		for j, member := range u.ResourceTypes {
			visit(at("unions[%d].resourceTypes[%d]", i, j), "member", u.Name, member.Name)
		}
	}
	for i, a := range p.Actions {
		visit(at("actions[%d]", i), "action", a.Name)
	}
	for i, b := range p.ActionBindings {
		visit(at("actionBindings[%d]", i), "binding", bindingName(b))
		for j, c := range b.Conditions {
			said := []string{"condition", bindingName(b)}
			if step := c.RelationshipAction; step != nil {
				said = append(said, step.Relation, step.ActionName)
			}
			visit(at("actionBindings[%d].conditions[%d]", i, j), said...)
		}
	}
}
