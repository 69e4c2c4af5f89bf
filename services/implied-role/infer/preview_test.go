package infer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"
)

// preview compares the world with its state after ops. It does not change the world.
func (w *simulatedNamespace) preview(ops func()) (Delta, *simulatedNamespace) {
	after := &simulatedNamespace{t: w.t, policy: w.policy, rules: maps.Clone(w.rules), bindings: maps.Clone(w.bindings), uids: w.uids}
	before := *w
	*w = *after
	ops()
	*after, *w = *w, before
	was, is := w.infer(), after.infer()
	changed := is.Rules.ChangedRoles(was.Rules)
	c := Comparison{Before: was.Rules, After: is.Rules, Exists: planEverything, Occupant: func(string) *Binding { return nil }, Most: 1000}
	for name := range union(w.bindings, after.bindings) {
		b, a := read(w.t, w.bindings[name]), read(w.t, after.bindings[name])
		switch {
		case b != nil && b.IsGenerated():
		case w.bindings[name] != after.bindings[name] || slices.Contains(changed, b.Role):
			c.Changes = append(c.Changes, BindingChange{b, a})
		default:
			c.Others = append(c.Others, b)
		}
	}
	return ComputeDelta(c), after
}

func union[V any](a, b map[string]V) map[string]struct{} {
	all := map[string]struct{}{}
	for key := range a {
		all[key] = struct{}{}
	}
	for key := range b {
		all[key] = struct{}{}
	}
	return all
}

// summary returns a delta as one line.
func summary(d Delta) string {
	var parts []string
	for _, c := range d.Bindings {
		parts = append(parts, fmt.Sprintf("%s%s %s:%s", c.Verb, c.Obstacle, c.Source, c.Role))
	}
	slices.Sort(parts)
	for _, r := range d.Rows {
		parts = append(parts, fmt.Sprintf("%s +%v -%v", r.Parent, r.Added, r.Removed))
	}
	for _, s := range d.Subjects {
		parts = append(parts, fmt.Sprintf("%s +%v -%v", s.Subject.Name, s.Gained, s.Lost))
	}
	for _, c := range d.Begun {
		parts = append(parts, fmt.Sprintf("begins %v", c))
	}
	for _, c := range d.Ended {
		parts = append(parts, fmt.Sprintf("ends %v", c))
	}
	for _, r := range d.Refused {
		parts = append(parts, r.Name+" "+r.Reason)
	}
	return strings.Join(append(parts, fmt.Sprint(d.Statuses)), "; ")
}

func TestComputeDeltaListsDifferences(t *testing.T) {
	for name, c := range map[string]struct{ before, change, want string }{
		"a rule": {
			"a>b B1=a{x} B2=b{y}", "b>c",
			"create B1:c; create B2:c; a +[c] -[]; b +[c] -[]; x +[c] -[]; y +[c] -[]; 2",
		},
		"a rule goes, and one has the role anyway": {
			"a>b b>c B1=a{x,y} B2=c{y}", "-b>c",
			"delete B1:c; a +[] -[c]; b +[] -[c]; x +[] -[c]; 1",
		},
		"only the way changes":        {"a>b a>c b>d c>d B=a{x}", "-b>d", "update B:d; b +[] -[d]; 0"},
		"a cycle":                     {"a>b B=b{x}", "b>a", "create B:a; b +[a] -[]; x +[a] -[]; begins [a b]; 2"},
		"a cycle is broken":           {"a>b b>a", "-b>a", "b +[] -[a]; ends [a b]; 1"},
		"a prohibited role":           {"", "a>ClusterRole/cluster-admin", "a>ClusterRole/cluster-admin ProhibitedRole; 1"},
		"a binding":                   {"a>b b>c B=a{x}", "B2=b{x,y}", "create B2:c; x +[] -[]; y +[b c] -[]; 0"},
		"a binding goes":              {"a>b B1=a{x} B2=a{x,y}", "-B2", "delete B2:b; y +[] -[a b]; 0"},
		"a subject":                   {"a>b B=a{x}", "B=a{x,y}", "update B:b; y +[a b] -[]; 0"},
		"a rule that was refused":     {"a>a", "b>c", "b +[c] -[]; 1"},
		"nothing":                     {"a>b B=a{x}", "a>b", "0"},
		"another's child by one rule": {"r:a>b B=a{x}", "r:a>c", "create B:c; delete B:b; a +[c] -[b]; x +[c] -[b]; 1"},
	} {
		w := newSimulatedNamespace(t)
		w.do(c.before)
		w.settle()
		d, _ := w.preview(func() { w.do(c.change) })
		want := strings.ReplaceAll(c.want, "x +[] -[]; ", "")
		if got := summary(d); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestComputeDeltaReportsTooLargeChange(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.policy.MaxGenerated = 1
	w.do("B1=a{x} B2=a{y}")
	d, _ := w.preview(func() { w.do("a>b") })
	if got := summary(d); got != "TooManyBindings B1:b; TooManyBindings B2:b; a +[b] -[]; x +[b] -[]; y +[b] -[]; a>b TooManyBindings; 1" {
		t.Errorf("got %q", got)
	}
}

func TestComputeDeltaListsSomeAndCountsAll(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.policy.MaxGenerated = 1 << 30
	const roles, bindings, most = 60, 40, 7
	for i := range roles - 1 {
		w.do(fmt.Sprintf("r%02d>r%02d", i, i+1))
	}
	for i := range bindings {
		w.do(fmt.Sprintf("B%02d=before{u%02d}", i, i))
	}
	was := w.infer()
	w.do("before>r00")
	is := w.infer()
	c := Comparison{Before: was.Rules, After: is.Rules, Exists: planEverything, Occupant: func(string) *Binding { return nil }, Most: 1 << 20}
	for _, b := range w.all() {
		c.Changes = append(c.Changes, BindingChange{b, b})
	}
	all := ComputeDelta(c)
	c.Most = most
	d := ComputeDelta(c)
	if all.More || len(all.Bindings) != roles*bindings || len(all.Subjects) != bindings {
		t.Fatalf("%d bindings, %d subjects, more: %v", len(all.Bindings), len(all.Subjects), all.More)
	}
	if !d.More || len(d.Bindings) != most || len(d.Rows) != 1 || len(d.Subjects) != most || d.Verbs[Create] != roles*bindings || d.Statuses != all.Statuses {
		t.Errorf("%d bindings of %v, %d rows, %d subjects, %d statuses, more: %v", len(d.Bindings), d.Verbs, len(d.Rows), len(d.Subjects), d.Statuses, d.More)
	}
	for i, c := range d.Bindings {
		if c.Name != all.Bindings[i].Name {
			t.Errorf("binding %d is %s, want %s", i, c.Name, all.Bindings[i].Name)
		}
	}
}

func TestComputeDeltaOfHugeChangeIsBounded(t *testing.T) {
	w := newSimulatedNamespace(t)
	const roles = 3500 // Together they imply 6 million roles.
	w.do("B=r0000{u}")
	for i := range roles - 1 {
		w.do(fmt.Sprintf("r%04d>r%04d", i, i+1))
	}
	was := w.infer()
	w.do(fmt.Sprintf("r%04d>end", roles-1))
	is := w.infer()
	d := ComputeDelta(Comparison{Before: was.Rules, After: is.Rules, Exists: planEverything, Occupant: func(string) *Binding { return nil }, Most: 1000})
	if !d.More || len(d.Rows) == 0 || len(d.Rows) == roles || d.Statuses != roles {
		t.Errorf("%d rows, %d statuses, more: %v", len(d.Rows), d.Statuses, d.More)
	}
}

// TestRuleSetCacheIsBounded computes the implied roles of many roles and checks the bound of the cache.
func TestRuleSetCacheIsBounded(t *testing.T) {
	w := newSimulatedNamespace(t)
	const parents, children = 500, 500
	for i := range parents {
		w.do(fmt.Sprintf("p%d>hub", i))
	}
	for i := range children {
		w.do(fmt.Sprintf("hub>c%d", i))
	}
	rules := w.infer().Rules
	for i := range parents {
		if n := len(rules.derivedRoles(role(fmt.Sprintf("p%d", i)))); n != children+1 {
			t.Fatalf("%d come with role %d", n, i)
		}
	}
	kept := 0
	for _, list := range rules.answers.derived {
		kept += len(list)
	}
	if kept > maxDerived || kept != rules.answers.kept {
		t.Errorf("%d are kept, and %d counted", kept, rules.answers.kept)
	}
}

func TestComputeDeltaEqualsLaterPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSimulatedNamespace(t)
		for range rapid.IntRange(5, 25).Draw(t, "before") {
			w.random(t)
		}
		before := w.settle()
		had := w.wants()
		d, after := w.preview(func() {
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				w.random(t)
			}
		})
		now := after.infer()
		var want []string
		for _, c := range now.differences(after.all()) {
			want = append(want, c.Verb.String()+c.Obstacle+c.Name)
		}
		var got []string
		for _, c := range d.Bindings {
			got = append(got, c.Verb.String()+c.Obstacle+c.Name)
		}
		if slices.Sort(want); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Fatalf("predicted %v, happened %v", got, want)
		}
		has := after.wants()
		for _, sc := range d.Subjects {
			for _, r := range sc.Gained {
				had[subjectRole{r, sc.Subject}] = struct{}{}
			}
			for _, r := range sc.Lost {
				delete(had, subjectRole{r, sc.Subject})
			}
		}
		if !maps.Equal(had, has) {
			t.Fatalf("predicted %v, happened %v", had, has)
		}
		table := map[Role]string{}
		for r := range before.Rules.ParentRoles() {
			table[r] = names(before.Rules.ImpliedRoles(r))
		}
		for _, row := range d.Rows {
			list := slices.DeleteFunc(roles(table[row.Parent]), func(r Role) bool { return slices.Contains(row.Removed, r) })
			list = append(list, row.Added...)
			slices.SortFunc(list, Role.Compare)
			if table[row.Parent] = names(list); len(list) == 0 {
				delete(table, row.Parent)
			}
		}
		for r := range now.Rules.ParentRoles() {
			if table[r] != names(now.Rules.ImpliedRoles(r)) {
				t.Fatalf("predicted %q for %s, happened %q", table[r], r, names(now.Rules.ImpliedRoles(r)))
			}
			delete(table, r)
		}
		if len(table) > 0 {
			t.Fatalf("predicted rows %v", table)
		}
	})
}

func subjectNames(list []rbacv1.Subject) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = s.Name
	}
	return strings.Join(texts, " ")
}
