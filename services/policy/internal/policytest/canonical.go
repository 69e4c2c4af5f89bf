package policytest

import (
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
)

// CanonicalYAML writes a policy as one sorted document. Policies with the same meaning and the same unions give the same
// bytes. Owners are left out.
func CanonicalYAML(p *policy.Policy) []byte {
	w := &yamlWriter{}
	writeList(w, "resourceTypes", declaredTypes(p.Types), func(t *policy.Type) {
		w.writePair("name", t.Name)
		w.writePair("idPrefix", t.IDPrefix)
		writeList(w, "relationships", t.Relations, func(r *policy.Relation) {
			w.writePair("relation", r.Name)
			writeList(w, "targetTypes", targetNames(r), w.writeName)
		})
	})
	writeList(w, "unions", p.Unions, func(u *policy.Union) {
		w.writePair("name", u.Name)
		writeList(w, "resourceTypes", u.Members, func(t *policy.Type) { w.writePair("name", t.Name) })
	})
	writeList(w, "actions", p.Actions, func(a *policy.Action) { w.writePair("name", a.Name) })
	writeList(w, "actionBindings", allBindings(p), w.writeBinding)
	return []byte(w.text.String())
}

// declaredTypes returns the types that a document declares.
func declaredTypes(types []*policy.Type) []*policy.Type {
	return slices.DeleteFunc(slices.Clone(types), (*policy.Type).IsSynthesised)
}

func targetNames(r *policy.Relation) []string {
	names := make([]string, len(r.References))
	for i, target := range r.References {
		names[i] = target.Name
	}
	slices.Sort(names)
	return names
}

// allBindings returns every binding once, in its written form.
func allBindings(p *policy.Policy) []*policy.Binding {
	var all []*policy.Binding
	seen := map[*policy.Binding]bool{}
	for _, t := range p.Types {
		for _, b := range t.Bindings {
			if !seen[b] {
				seen[b] = true
				all = append(all, b)
			}
		}
	}
	slices.SortFunc(all, func(a, b *policy.Binding) int {
		return strings.Compare(a.Action+" "+a.On, b.Action+" "+b.On)
	})
	return all
}

func (w *yamlWriter) writeBinding(b *policy.Binding) {
	w.writePair("actionName", b.Action)
	w.writePair("typeName", b.On)
	var conditions []*policy.RelationStep
	if b.RoleBinding {
		conditions = append(conditions, nil)
	}
	for i := range b.Steps {
		conditions = append(conditions, &b.Steps[i])
	}
	writeList(w, "conditions", conditions, func(s *policy.RelationStep) {
		if s == nil {
			w.writeLine("roleBinding: {}")
			return
		}
		w.writeLine("relationshipAction:")
		w.indent += 2
		w.writePair("relation", s.Relation)
		w.writePair("actionName", s.Action)
		w.indent -= 2
	})
}

// yamlWriter writes YAML in block style.
type yamlWriter struct {
	text   strings.Builder
	indent int
	// dash is true if the next line begins an item.
	dash bool
}

func writeList[T any](w *yamlWriter, key string, items []T, write func(T)) {
	if len(items) == 0 {
		return
	}
	w.writeLine(key + ":")
	w.indent += 4
	for _, item := range items {
		w.dash = true
		write(item)
	}
	w.indent -= 4
}

func (w *yamlWriter) writeLine(text string) {
	if w.dash {
		w.text.WriteString(strings.Repeat(" ", w.indent-2) + "- ")
	} else {
		w.text.WriteString(strings.Repeat(" ", w.indent))
	}
	w.dash = false
	w.text.WriteString(text + "\n")
}

func (w *yamlWriter) writeName(name string) { w.writePair("name", name) }

func (w *yamlWriter) writePair(key, name string) { w.writeLine(key + ": " + quotedName(name)) }

// quotedName returns a name in a form that every version of YAML reads as a text.
func quotedName(name string) string {
	special := []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
	if name == "" || name[0] >= '0' && name[0] <= '9' || slices.Contains(special, name) {
		return `"` + name + `"`
	}
	return name
}
