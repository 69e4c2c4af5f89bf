package policytest

import (
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
)

// Canonical writes a policy as one sorted document. Policies with the same meaning and the same unions give the same
// bytes. Owners are left out.
func Canonical(p *policy.Policy) []byte {
	w := &writer{}
	list(w, "resourceTypes", declared(p.Types), func(t *policy.Type) {
		w.pair("name", t.Name)
		w.pair("idPrefix", t.IDPrefix)
		list(w, "relationships", t.Relations, func(r *policy.Relation) {
			w.pair("relation", r.Name)
			list(w, "targetTypes", targets(r), w.name)
		})
	})
	list(w, "unions", p.Unions, func(u *policy.Union) {
		w.pair("name", u.Name)
		list(w, "resourceTypes", u.Members, func(t *policy.Type) { w.pair("name", t.Name) })
	})
	list(w, "actions", p.Actions, func(a *policy.Action) { w.pair("name", a.Name) })
	list(w, "actionBindings", bindings(p), w.binding)
	return []byte(w.text.String())
}

// declared returns the types that a document declares.
func declared(types []*policy.Type) []*policy.Type {
	return slices.DeleteFunc(slices.Clone(types), (*policy.Type).Synthesised)
}

func targets(r *policy.Relation) []string {
	names := make([]string, len(r.References))
	for i, target := range r.References {
		names[i] = target.Name
	}
	slices.Sort(names)
	return names
}

// bindings returns every binding once, in its written form.
func bindings(p *policy.Policy) []*policy.Binding {
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

func (w *writer) binding(b *policy.Binding) {
	w.pair("actionName", b.Action)
	w.pair("typeName", b.On)
	var conditions []*policy.Step
	if b.RoleBinding {
		conditions = append(conditions, nil)
	}
	for i := range b.Steps {
		conditions = append(conditions, &b.Steps[i])
	}
	list(w, "conditions", conditions, func(s *policy.Step) {
		if s == nil {
			w.line("roleBinding: {}")
			return
		}
		w.line("relationshipAction:")
		w.indent += 2
		w.pair("relation", s.Relation)
		w.pair("actionName", s.Action)
		w.indent -= 2
	})
}

// writer writes YAML in block style.
type writer struct {
	text   strings.Builder
	indent int
	// dash is true if the next line begins an item.
	dash bool
}

func list[T any](w *writer, key string, items []T, write func(T)) {
	if len(items) == 0 {
		return
	}
	w.line(key + ":")
	w.indent += 4
	for _, item := range items {
		w.dash = true
		write(item)
	}
	w.indent -= 4
}

func (w *writer) line(text string) {
	if w.dash {
		w.text.WriteString(strings.Repeat(" ", w.indent-2) + "- ")
	} else {
		w.text.WriteString(strings.Repeat(" ", w.indent))
	}
	w.dash = false
	w.text.WriteString(text + "\n")
}

func (w *writer) name(name string) { w.pair("name", name) }

func (w *writer) pair(key, name string) { w.line(key + ": " + quoted(name)) }

// quoted returns a name in a form that every version of YAML reads as a text.
func quoted(name string) string {
	special := []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
	if name == "" || name[0] >= '0' && name[0] <= '9' || slices.Contains(special, name) {
		return `"` + name + `"`
	}
	return name
}
