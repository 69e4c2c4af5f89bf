package plan_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/syntax"
	"github.com/entail-dev/entail/services/store-sync/policymodule/plan"
)

// simulatedStore is a Store with its documents and their AuthorizationModels.
type simulatedStore struct {
	t         testing.TB
	documents map[string]plan.Document
	made      map[string]*corev1alpha1.AuthorizationModel
	core      []string
	roles     string
	room      *plan.ModelBudget
	clock     int64
}

func newSimulatedStore(t testing.TB) *simulatedStore {
	t.Helper()
	return &simulatedStore{t: t, documents: map[string]plan.Document{}, made: map[string]*corev1alpha1.AuthorizationModel{}}
}

func read(t testing.TB, text string) *iaplv1alpha1.Policy {
	t.Helper()
	p := new(iaplv1alpha1.Policy)
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// say registers a document, or changes its text.
func (w *simulatedStore) say(name, text string) {
	w.t.Helper()
	d, known := w.documents[name]
	if !known {
		w.clock++
		d = plan.Document{Name: name, Created: time.Unix(w.clock, 0)}
	}
	d.Present = read(w.t, text)
	w.documents[name] = d
}

func (w *simulatedStore) input() plan.Input {
	defined := map[string]bool{}
	for _, name := range w.core {
		defined[name] = true
	}
	return plan.Input{
		Store: corev1alpha1.StoreRef{Name: "demo"}, Roles: w.roles, Room: w.room,
		Documents: slices.Collect(maps.Values(w.documents)), Has: slices.Collect(maps.Values(w.made)),
		Defined: defined,
	}
}

// settle carries out the plan, and verifies that the next plan is empty.
func (w *simulatedStore) settle() plan.Plan {
	w.t.Helper()
	todo := plan.DecideDocuments(w.input())
	for _, m := range todo.Apply {
		w.made[m.Name] = &m
	}
	for _, name := range todo.Delete {
		delete(w.made, name)
	}
	again := plan.DecideDocuments(w.input())
	if len(again.Apply)+len(again.Delete) > 0 {
		w.t.Fatalf("something is left to do: %+v", again)
	}
	if !reflect.DeepEqual(again.Validations, todo.Validations) {
		w.t.Fatalf("another look says %+v, the first said %+v", again.Validations, todo.Validations)
	}
	return todo
}

// live returns the live declarations of each document with any.
func (w *simulatedStore) live() map[string]string {
	live := map[string]string{}
	for _, m := range w.made {
		name := m.Annotations[corev1alpha1.DocumentAnnotation]
		for line := range strings.Lines(m.Spec.Model) {
			if typ, found := strings.CutPrefix(strings.TrimSpace(line), "type "); found {
				live[name] = strings.TrimSpace(live[name] + " " + typ)
			}
		}
		if name != corev1alpha1.Roles {
			live[name] += ""
		}
	}
	return live
}

// stale reports whether the live text of a document differs from its present one.
func (w *simulatedStore) stale(name string) bool {
	w.t.Helper()
	for _, m := range w.made {
		if m.Annotations[corev1alpha1.DocumentAnnotation] == name {
			return !reflect.DeepEqual(read(w.t, m.Annotations[corev1alpha1.PolicyAnnotation]), w.documents[name].Present)
		}
	}
	return true
}

// expectText expects the live text of a document to be want.
func (w *simulatedStore) expectText(name, want string) {
	w.t.Helper()
	for _, m := range w.made {
		if m.Annotations[corev1alpha1.DocumentAnnotation] == name {
			if got := read(w.t, m.Annotations[corev1alpha1.PolicyAnnotation]); !reflect.DeepEqual(got, read(w.t, want)) {
				w.t.Errorf("live of %s is %+v, want %s", name, got, want)
			}
			return
		}
	}
	w.t.Errorf("nothing is live of %s", name)
}

func (w *simulatedStore) expectLive(want map[string]string) {
	w.t.Helper()
	if got := w.live(); !maps.Equal(got, want) {
		w.t.Errorf("live is %v, want %v", got, want)
	}
}

// expectFindings expects a text in the findings of each refused document, and no findings on others.
func (w *simulatedStore) expectFindings(todo plan.Plan, want map[string]string) {
	w.t.Helper()
	for name := range w.documents {
		var told []string
		for _, f := range todo.Validations[name].Findings {
			told = append(told, fmt.Sprintf("%s: %s %s", f.Path, f.Code, f.Message))
		}
		got := strings.Join(told, "\n")
		if (got == "") != (want[name] == "") || !strings.Contains(got, want[name]) {
			w.t.Errorf("findings on %s:\n%s\nwant %q", name, got, want[name])
		}
	}
}

const (
	tenant  = "resourceTypes: [{name: tenant, idPrefix: idntten, relationships: [{relation: parent, targetTypes: [{name: tenant}]}]}]\n"
	project = "resourceTypes: [{name: project, idPrefix: entrprj, relationships: [{relation: parent, targetTypes: [{name: tenant}]}]}]\n"
	owners  = "unions: [{name: resourceowner, resourceTypes: [{name: tenant}, {name: project}]}]\n"
	lb      = `resourceTypes: [{name: loadbalancer, idPrefix: loadbal, relationships: [{relation: owner, targetTypes: [{name: resourceowner}]}]}]
actions: [{name: loadbalancer_get}]
actionBindings:
  - {actionName: loadbalancer_get, typeName: loadbalancer, conditions: [{roleBinding: {}}, {relationshipAction: {relation: owner, actionName: loadbalancer_get}}]}
  - {actionName: loadbalancer_get, typeName: resourceowner, conditions: [{roleBinding: {}}]}
`
)

func registered(t testing.TB) *simulatedStore {
	t.Helper()
	w := newSimulatedStore(t)
	w.say("a/tenant", tenant)
	w.say("b/project", project)
	w.say("c/lb", lb)
	w.say("d/owners", owners)
	w.settle()
	return w
}

// whole returns the declarations of the fixture's documents.
func whole() map[string]string {
	return map[string]string{"a/tenant": "tenant", "b/project": "project", "c/lb": "loadbalancer", "d/owners": "", "roles": "role user"}
}

func TestDecideDocumentsIsIndependentOfOrder(t *testing.T) {
	t.Parallel()
	parts := map[string]string{"a/tenant": tenant, "b/project": project, "c/lb": lb, "d/owners": owners}
	rapid.Check(t, func(r *rapid.T) {
		w := newSimulatedStore(t)
		order := rapid.Permutation(slices.Sorted(maps.Keys(parts))).Draw(r, "order")
		var todo plan.Plan
		for _, name := range order {
			w.say(name, parts[name])
			todo = w.settle()
		}
		w.expectLive(whole())
		w.expectFindings(todo, nil)
	})
}

func TestDecideDocumentsDefersMissingReferences(t *testing.T) {
	t.Parallel()
	w := newSimulatedStore(t)
	w.say("b/project", project)
	w.expectFindings(w.settle(), map[string]string{
		"b/project": `spec.resourceTypes[0].relationships[0].targetTypes[0]: E-UNKNOWN-TYPE`,
	})
	w.expectLive(nil)
	w.say("a/tenant", tenant)
	w.expectFindings(w.settle(), nil)
	w.expectLive(map[string]string{"a/tenant": "tenant", "b/project": "project"})
}

func TestDecideDocumentsRefusesLaterConflict(t *testing.T) {
	t.Parallel()
	w := registered(t)
	w.say("Z/usurper", tenant) // Its name sorts before the live ones.
	w.say("e/friend", "resourceTypes: [{name: friend, idPrefix: friend}]\n")
	w.expectFindings(w.settle(), map[string]string{"Z/usurper": "E-DUP-TYPE type \"tenant\" is declared twice; the first is at PolicyDocument a/tenant: spec.resourceTypes[0].name"})
	want := whole()
	want["e/friend"] = "friend"
	w.expectLive(want)
}

func TestDecideDocumentsKeepsOlderOfTwoNewDocuments(t *testing.T) {
	t.Parallel()
	w := newSimulatedStore(t)
	w.say("z/first", tenant)
	w.say("a/second", tenant)
	w.expectFindings(w.settle(), map[string]string{"a/second": "E-DUP-TYPE"})
	w.expectLive(map[string]string{"z/first": "tenant"})
}

func TestDecideDocumentsInvalidDocumentDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	thing := func(name, prefix, up string) string {
		return fmt.Sprintf("resourceTypes: [{name: %s, idPrefix: %s, relationships: [{relation: up, targetTypes: [{name: %s}]}]}]\n", name, prefix, up)
	}
	w := newSimulatedStore(t)
	w.say("s/a", thing("gamma", "paa", "nowhere")) // It is the oldest, and conflicts with s/c.
	w.say("s/b", thing("alpha", "pbb", "beta"))
	w.say("s/c", thing("gamma", "pcc", "alpha"))
	w.say("s/d", thing("beta", "pdd", "gamma"))
	w.expectFindings(w.settle(), map[string]string{"s/a": "E-UNKNOWN-TYPE"})
	w.expectLive(map[string]string{"s/b": "alpha", "s/c": "gamma", "s/d": "beta"})
}

func TestDecideDocumentsInvalidEditKeepsLiveText(t *testing.T) {
	t.Parallel()
	w := registered(t)
	w.say("c/lb", strings.ReplaceAll(lb, "relation: owner, actionName", "relation: nowhere, actionName"))
	w.say("e/late", "resourceTypes: [{name: late, idPrefix: late, relationships: [{relation: balancer, targetTypes: [{name: loadbalancer}]}]}]\n")
	todo := w.settle()
	w.expectFindings(todo, map[string]string{"c/lb": "E-UNKNOWN-RELATION"})
	want := whole()
	want["e/late"] = "late"
	w.expectLive(want)
	if v := todo.Validations["c/lb"]; !w.stale("c/lb") {
		t.Errorf("its verdict is %+v", v)
	}
	if v := todo.Validations["a/tenant"]; w.stale("a/tenant") || len(v.Findings) > 0 || !strings.HasPrefix(v.AuthorizationModel, "policydocument.a.tenant.") {
		t.Errorf("another's verdict is %+v", v)
	}
}

func TestDecideDocumentsRemovesUnusedElements(t *testing.T) {
	t.Parallel()
	w := registered(t)
	delete(w.documents, "c/lb")
	w.expectFindings(w.settle(), nil)
	w.expectLive(map[string]string{"a/tenant": "tenant", "b/project": "project", "d/owners": ""})
	for _, name := range []string{"a/tenant", "b/project", "d/owners"} {
		delete(w.documents, name)
		w.settle()
	}
	w.expectLive(nil)
}

func TestDecideDocumentsAcceptsJointChange(t *testing.T) {
	t.Parallel()
	w := registered(t)
	for name, text := range map[string]string{"a/tenant": tenant, "b/project": project, "d/owners": owners} {
		w.say(name, strings.NewReplacer("name: tenant", "name: lodger").Replace(text))
	}
	w.expectFindings(w.settle(), nil)
	want := whole()
	want["a/tenant"] = "lodger"
	w.expectLive(want)
}

func TestDecideDocumentsOmitsTypesOfStore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		core  []string
		roles string
		want  string
		code  string
	}{
		"users":                       {core: []string{"user"}, want: "role"},
		"roles and users":             {core: []string{"user", "role", "role#subject"}},
		"roles of another name":       {core: []string{"user", "crew", "crew#member"}, roles: "crew#member"},
		"roles with another relation": {core: []string{"user", "role", "role#assignee"}, roles: "role#assignee"},
		"roles that lack it":          {core: []string{"user", "role", "role#assignee"}, code: "E-OPTION"},
		"roles that are no place":     {roles: "role", code: "E-OPTION"},
		"roles that are no type":      {roles: "A#b", code: "E-OPTION"},
		"a document's type":           {core: []string{"loadbalancer"}, code: "E-COLLISION"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newSimulatedStore(t)
			w.core, w.roles = test.core, test.roles
			w.say("a/all", strings.ReplaceAll(lb, "resourceowner", "loadbalancer")[:strings.Index(lb, "  - {actionName: loadbalancer_get, typeName: resourceowner")])
			todo := w.settle()
			if test.code != "" {
				w.expectFindings(todo, map[string]string{"a/all": test.code})
				w.expectLive(nil)
				return
			}
			want := map[string]string{"a/all": "loadbalancer"}
			if test.want != "" {
				want["roles"] = test.want
			}
			w.expectFindings(todo, nil)
			w.expectLive(want)
			if !strings.Contains(fmt.Sprint(todo.Apply), "["+cmp.Or(test.roles, "role#subject")+"]") {
				t.Errorf("role bindings do not refer to %s: %+v", test.roles, todo.Apply)
			}
		})
	}
}

func TestDecideDocumentsTypeTakenByStoreDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	w := registered(t)
	w.core = []string{"project"}
	w.say("e/late", "resourceTypes: [{name: late, idPrefix: late, relationships: [{relation: up, targetTypes: [{name: tenant}]}]}]\n")
	w.expectFindings(w.settle(), map[string]string{"b/project": "E-COLLISION", "d/owners": "E-UNKNOWN-TYPE"})
	want := whole()
	delete(want, "b/project")
	want["e/late"] = "late"
	w.expectLive(want)
	w.say("b/project", strings.ReplaceAll(project, "project", "undertaking"))
	w.say("d/owners", strings.ReplaceAll(owners, "project", "undertaking"))
	w.expectFindings(w.settle(), nil)
	want["b/project"] = "undertaking"
	w.expectLive(want)
}

func TestDecideDocumentsBoundsSizeOfDocument(t *testing.T) {
	t.Parallel()
	w := registered(t)
	long := new(iaplv1alpha1.Policy)
	for i := range 1000 {
		long.Actions = append(long.Actions, iaplv1alpha1.Action{Name: fmt.Sprintf("a%d%s", i, strings.Repeat("b", 250))})
	}
	data, err := json.Marshal(long)
	if err != nil {
		t.Fatal(err)
	}
	w.say("e/long", string(data))
	w.expectFindings(w.settle(), map[string]string{"e/long": "spec: E-LIMIT the document has"})
	w.expectLive(whole())
}

func TestDecideDocumentsRepairsEditedModel(t *testing.T) {
	t.Parallel()
	w := registered(t)
	spoiled := 0
	for _, m := range w.made {
		switch m.Annotations[corev1alpha1.DocumentAnnotation] {
		case "a/tenant":
			m.Spec.Model, spoiled = "module x", spoiled+1
		case "b/project":
			m.Annotations[corev1alpha1.PolicyAnnotation], spoiled = "{", spoiled+1
		case corev1alpha1.Roles:
			delete(w.made, m.Name)
			spoiled++
		}
	}
	if todo := w.settle(); len(todo.Apply) != 3 || spoiled != 3 {
		t.Errorf("%d were spoiled, made again were %+v", spoiled, todo.Apply)
	}
	w.expectLive(whole())
}

func TestModelNamesAreUniqueAndValid(t *testing.T) {
	t.Parallel()
	w := newSimulatedStore(t)
	names := []string{
		"a/" + strings.Repeat("b", 253), "a/" + strings.Repeat("b", 252), "1a/x", "a/b.c", "a/b-c", "east/a/b", "a.b/c",
	}
	for i, name := range names {
		w.say(name, fmt.Sprintf("resourceTypes: [{name: thing_%c, idPrefix: thing%d}]\n", 'a'+i, i))
	}
	todo := w.settle()
	w.expectFindings(todo, nil)
	if len(w.made) != len(names) {
		t.Errorf("there are %d objects for %d documents", len(w.made), len(names))
	}
	modules := map[string]bool{}
	for _, m := range todo.Apply {
		if len(m.Name) > 253 {
			t.Errorf("%s has %d characters", m.Name, len(m.Name))
		}
		modules[strings.SplitN(m.Spec.Model, "\n", 2)[0]] = true
	}
	if len(modules) != len(names) {
		t.Errorf("modules are %v", modules)
	}
}

// This test plays random histories of a few services that depend on each other.
func TestDecideDocumentsKeepsLivePolicyValidInRandomHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := newSimulatedStore(t)
		for range rapid.IntRange(1, 12).Draw(r, "todo") {
			name := "s/" + rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(r, "service")
			if rapid.IntRange(0, 4).Draw(r, "deed") == 0 {
				delete(w.documents, name)
			} else {
				types := rapid.SampledFrom([]string{"alpha", "beta", "gamma", "delta"})
				w.say(name, fmt.Sprintf("resourceTypes: [{name: %s, idPrefix: p%s, relationships: [{relation: up, targetTypes: [{name: %s}]}]}]\n",
					types.Draw(r, "type"), name[2:]+"xx", types.Draw(r, "target")))
			}
			before := w.live()
			first := plan.DecideDocuments(w.input())
			if again := plan.DecideDocuments(w.input()); !reflect.DeepEqual(first, again) {
				r.Fatalf("the same objects, another plan:\n%+v\n%+v", first, again)
			}
			todo := w.settle()
			after := w.live()
			expectValid(r, w)
			for n, d := range w.documents {
				v := todo.Validations[n]
				if len(v.Findings) == 0 && (w.stale(n) || v.AuthorizationModel == "") {
					r.Fatalf("%s is valid, but not live: %+v", n, v)
				}
				data, _ := json.Marshal(d.Present)
				if was, is := before[n], after[n]; was != "" && is == "" && strings.Contains(string(data), was) {
					r.Fatalf("%s was taken down: %v, then %v (%+v)", n, before, after, d)
				}
			}
		}
	})
}

func expectValid(r *rapid.T, w *simulatedStore) {
	var documents []*syntax.Document
	for _, m := range w.made {
		if name := m.Annotations[corev1alpha1.DocumentAnnotation]; name != corev1alpha1.Roles {
			p := new(iaplv1alpha1.Policy)
			if err := json.Unmarshal([]byte(m.Annotations[corev1alpha1.PolicyAnnotation]), p); err != nil {
				r.Fatal(err)
			}
			documents = append(documents, plan.ToSyntaxDocument(name, name, p))
		}
	}
	if _, found := check.Documents(documents, policy.Options{}); len(documents) > 0 && found.HasErrors() {
		r.Fatalf("what is live is no policy: %v", found)
	}
}
