package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy/syntax"
)

// plainPolicy is a plain reading of the documents of a policy. It uses nothing of the checker and the compilers. It is
// slow, and short enough to be obviously correct.
type plainPolicy struct {
	// targets holds the target types by type and relation.
	targets map[typeAndName][]string
	// bindings holds the bindings by type and action.
	bindings map[typeAndName]syntax.Binding
}

// typeAndName is a type or an object, with one of its relations or actions.
type typeAndName struct{ of, name string }

func readPlainPolicy(t *testing.T, texts []string) plainPolicy {
	t.Helper()
	var files []syntax.File
	for _, text := range texts {
		files = append(files, syntax.File{Content: []byte(text)})
	}
	documents, found := syntax.ParseFiles(files, syntax.ParseLimits{})
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
	s := plainPolicy{targets: map[typeAndName][]string{}, bindings: map[typeAndName]syntax.Binding{}}
	for _, d := range documents {
		for _, declared := range d.ResourceTypes {
			for _, r := range declared.Relationships {
				s.targets[typeAndName{declared.Name.Text, r.Relation.Text}] = typesOf(r.Targets, members)
			}
		}
		for _, b := range d.Bindings {
			for _, on := range members(b.Type) {
				s.bindings[typeAndName{on.Text, b.Action.Text}] = b
			}
		}
	}
	s.addRoles()
	return s
}

// addRoles adds the type of roles, unless it is declared or no binding uses roles.
func (s plainPolicy) addRoles() {
	for _, b := range s.bindings {
		if subjects := (typeAndName{"role", "subject"}); slices.ContainsFunc(b.Conditions, byRole) && s.targets[subjects] == nil {
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

// plainPolicyWithTuples is a source with relationships between objects.
type plainPolicyWithTuples struct {
	plainPolicy
	facts   []relationshipTuple
	objects []string
	// related holds the users of facts by object and relation.
	related map[typeAndName][]string
	// next holds, for each action on an object, the actions on other objects that give it.
	next map[typeAndName][]typeAndName
}

func (s plainPolicy) world(facts []relationshipTuple, objects []string) plainPolicyWithTuples {
	w := plainPolicyWithTuples{plainPolicy: s, facts: facts, objects: objects, related: map[typeAndName][]string{}, next: map[typeAndName][]typeAndName{}}
	for _, f := range facts {
		on := typeAndName{f.Object, f.Relation}
		w.related[on] = append(w.related[on], f.User)
	}
	for _, object := range objects {
		for on := range s.bindings {
			if on.of == typeOf(object) {
				w.expand(typeAndName{object, on.name})
			}
		}
	}
	return w
}

func (w plainPolicyWithTuples) expand(p typeAndName) {
	w.next[p] = nil
	for _, c := range w.bindings[typeAndName{typeOf(p.of), p.name}].Conditions {
		if step := c.RelationshipAction; step != nil {
			for _, object := range w.related[typeAndName{p.of, step.Relation.Text}] {
				w.next[p] = append(w.next[p], typeAndName{object, step.Action.Text})
			}
		}
	}
}

// bound reports whether one of the user's roles is bound to the object for the action.
func (w plainPolicyWithTuples) bound(user string, p typeAndName) bool {
	hasRole := func(subjects string) bool {
		return slices.Contains(w.related[typeAndName{strings.TrimSuffix(subjects, "#subject"), "subject"}], user)
	}
	return slices.ContainsFunc(w.bindings[typeAndName{typeOf(p.of), p.name}].Conditions, byRole) &&
		slices.ContainsFunc(w.related[typeAndName{p.of, p.name + "_role"}], hasRole)
}

// allowed returns everything that a user may do. It starts with the actions that roles give, and adds the actions that
// follow until nothing is added.
func (w plainPolicyWithTuples) allowed(user string) map[typeAndName]bool {
	may := map[typeAndName]bool{}
	for before := -1; before < len(may); {
		before = len(may)
		for p, next := range w.next {
			if !may[p] && (w.bound(user, p) || slices.ContainsFunc(next, func(n typeAndName) bool { return may[n] })) {
				may[p] = true
			}
		}
	}
	return may
}

// walks returns the steps of an engine without memory, up to a depth. It returns false if an action needs more than
// most steps.
func (w plainPolicyWithTuples) walks(depth, most int) (map[typeAndName]int, bool) {
	walks := map[typeAndName]int{}
	for range depth {
		longer := map[typeAndName]int{}
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
