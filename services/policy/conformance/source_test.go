package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy/syntax"
)

// source is what the documents of a policy say, with nothing of what checks and compiles them: it is
// slow, and short enough to be seen to be right.
type source struct {
	// targets are the types that a relation of a type leads to.
	targets map[pair][]string
	// bindings say by type and action who may take it.
	bindings map[pair]syntax.Binding
}

// pair is a type or an object, and a relation or an action of it.
type pair struct{ of, name string }

func readSource(t *testing.T, texts []string) source {
	t.Helper()
	var files []syntax.File
	for _, text := range texts {
		files = append(files, syntax.File{Content: []byte(text)})
	}
	documents, found := syntax.Parse(files, syntax.Limits{})
	if found.HasErrors() {
		t.Fatal(found)
	}
	unions := map[string][]syntax.Name{}
	for _, d := range documents {
		for _, u := range d.Unions {
			unions[u.Name.Text] = u.Members
		}
	}
	members := func(name syntax.Name) []syntax.Name {
		if union, found := unions[name.Text]; found {
			return union
		}
		return []syntax.Name{name}
	}
	s := source{targets: map[pair][]string{}, bindings: map[pair]syntax.Binding{}}
	for _, d := range documents {
		for _, declared := range d.ResourceTypes {
			for _, r := range declared.Relationships {
				s.targets[pair{declared.Name.Text, r.Relation.Text}] = typesOf(r.Targets, members)
			}
		}
		for _, b := range d.Bindings {
			for _, on := range members(b.Type) {
				s.bindings[pair{on.Text, b.Action.Text}] = b
			}
		}
	}
	s.addRoles()
	return s
}

// addRoles adds the type of roles, unless it is declared or nothing is bound by one.
func (s source) addRoles() {
	for _, b := range s.bindings {
		if subjects := (pair{"role", "subject"}); slices.ContainsFunc(b.Conditions, byRole) && s.targets[subjects] == nil {
			s.targets[subjects] = []string{"user"}
		}
	}
}

func byRole(c syntax.Condition) bool { return c.RoleBinding }

func typesOf(names []syntax.Name, members func(syntax.Name) []syntax.Name) []string {
	var all []string
	for _, name := range names {
		for _, member := range members(name) {
			all = append(all, member.Text)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// world is a source with relationships between objects.
type world struct {
	source
	facts   []fact
	objects []string
	// related are the users of facts by object and relation.
	related map[pair][]string
	// next are the actions on other objects that each give an action on an object, which one has or has not.
	next map[pair][]pair
}

func (s source) world(facts []fact, objects []string) world {
	w := world{source: s, facts: facts, objects: objects, related: map[pair][]string{}, next: map[pair][]pair{}}
	for _, f := range facts {
		on := pair{f.Object, f.Relation}
		w.related[on] = append(w.related[on], f.User)
	}
	for _, object := range objects {
		for on := range s.bindings {
			if on.of == typeOf(object) {
				w.expand(pair{object, on.name})
			}
		}
	}
	return w
}

func (w world) expand(p pair) {
	w.next[p] = nil
	for _, c := range w.bindings[pair{typeOf(p.of), p.name}].Conditions {
		if step := c.RelationshipAction; step != nil {
			for _, object := range w.related[pair{p.of, step.Relation.Text}] {
				w.next[p] = append(w.next[p], pair{object, step.Action.Text})
			}
		}
	}
}

// bound reports whether a role of the user's is bound to the object for the action.
func (w world) bound(user string, p pair) bool {
	hasRole := func(subjects string) bool {
		return slices.Contains(w.related[pair{strings.TrimSuffix(subjects, "#subject"), "subject"}], user)
	}
	return slices.ContainsFunc(w.bindings[pair{typeOf(p.of), p.name}].Conditions, byRole) &&
		slices.ContainsFunc(w.related[pair{p.of, p.name + "_role"}], hasRole)
}

// allowed is all that a user may do: what roles give, then what follows from it, until nothing more does.
func (w world) allowed(user string) map[pair]bool {
	may := map[pair]bool{}
	for before := -1; before < len(may); {
		before = len(may)
		for p, next := range w.next {
			if !may[p] && (w.bound(user, p) || slices.ContainsFunc(next, func(n pair) bool { return may[n] })) {
				may[p] = true
			}
		}
	}
	return may
}

// walks are how many steps an engine takes that remembers none of them, up to that depth; false is for too many.
func (w world) walks(depth, most int) (map[pair]int, bool) {
	walks := map[pair]int{}
	for range depth {
		longer := map[pair]int{}
		for p, next := range w.next {
			longer[p] = 1
			for _, n := range next {
				longer[p] += walks[n]
			}
			if longer[p] > most {
				return nil, false
			}
		}
		walks = longer
	}
	return walks, true
}

func typeOf(object string) string {
	typ, _, _ := strings.Cut(object, ":")
	return typ
}
