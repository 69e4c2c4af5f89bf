package check_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/internal/policytest"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// commonMistakes returns mistakes that are easily made with the algorithm, by number and subject.
func commonMistakes() []string {
	return []string{
		"1: the loop has another variable", "2: duplicates are overwritten", "3: a union has no targetTypes",
		"6: pairs are never found again", "7: every binding of a type fails", "7: the branches do not share their pairs",
		"9: a mapping is looked up among names", "10: the expanded targets are dropped", "12: members must be unions",
		"13: a mapping is looked up among types", "14: a binding has no resourceTypeName", "15: an empty mapping is false",
		"16: the condition itself has no relation", "17: the binding's action is looked for on the target",
		"18: names are not checked", "18: empty lists are not checked", "18: duplicates inside are not checked", "18: collisions are not checked",
	}
}

// TestCheckerEqualsReferenceImplementation compares the checker with a plain implementation of the algorithm, on valid
// and on damaged policies. For every slip, it requires a policy that the slip decides differently.
func TestCheckerEqualsReferenceImplementation(t *testing.T) {
	t.Parallel()
	// One policy with a wrong decision is enough for a slip.
	wrong := map[string]int{}
	accepted, refused := 0, 0
	for _, documents := range corpus(t) {
		p, found := check.Documents(documents, policy.Options{})
		if want := accepts(documents, ""); (p != nil) != want {
			t.Fatalf("accepted: %v, the description accepts: %v\n%s", p != nil, want, detail(found))
		}
		if p != nil {
			accepted++
		} else {
			refused++
		}
		for _, slip := range commonMistakes() {
			if wrong[slip] == 0 && accepts(documents, slip) != (p != nil) {
				wrong[slip]++
			}
		}
	}
	for _, slip := range commonMistakes() {
		if wrong[slip] == 0 {
			t.Errorf("no policy shows slip %s", slip)
		}
	}
	if accepted < 1000 || refused < 1000 {
		t.Errorf("%d policies were accepted and %d refused: the comparison says little", accepted, refused)
	}
}

// corpus returns the example, the cases of the other tests, and generated policies, unchanged and damaged.
func corpus(t *testing.T) [][]*syntax.Document {
	t.Helper()
	fixture, err := os.ReadFile("../testdata/loadbalancer/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	texts := [][]string{{string(fixture)}}
	for _, cases := range []map[string]invalidPolicy{duplicates(), references(), collisions()} {
		for _, c := range cases {
			text, _ := unmark(base + "---\n" + c.text)
			texts = append(texts, []string{text})
		}
	}
	for seed := range policytest.SeedRange(t, 2000) {
		texts = append(texts, policytest.GeneratePolicy(seed))
	}
	var all [][]*syntax.Document
	for _, text := range texts {
		if documents, found := syntax.ParseFiles(files(text...), syntax.ParseLimits{}); !found.HasErrors() {
			all = append(all, documents)
		}
	}
	for seed := range policytest.SeedRange(t, 4000) {
		random := rand.New(rand.NewPCG(seed, 1))
		documents, _ := syntax.ParseFiles(files(policytest.GeneratePolicy(seed)...), syntax.ParseLimits{})
		damagePolicy(random, documents)
		all = append(all, documents)
	}
	return all
}

// damagePolicy changes one part, which often makes the policy invalid.
func damagePolicy(random *rand.Rand, documents []*syntax.Document) {
	d := documents[random.IntN(len(documents))]
	switch n := random.IntN(4); {
	case n == 0 && len(d.ResourceTypes) > 0:
		damageType(random, d)
	case n == 1 && len(d.Unions) > 0:
		i := random.IntN(len(d.Unions))
		changes := []func(){
			func() { d.Unions[i].Name.Text = otherName(random, d.Unions[i].Name.Text) },
			func() { d.Unions = append(d.Unions, d.Unions[i]) },
			func() { d.Unions[i].Members = damageNames(random, d.Unions[i].Members) },
		}
		changes[random.IntN(len(changes))]()
	case n == 2 && len(d.Actions) > 0:
		i := random.IntN(len(d.Actions))
		changes := []func(){
			func() { d.Actions[i].Name.Text = otherName(random, d.Actions[i].Name.Text) },
			func() { d.Actions = append(d.Actions, d.Actions[i]) },
			func() { d.Actions = slices.Delete(d.Actions, i, i+1) },
		}
		changes[random.IntN(len(changes))]()
	case len(d.Bindings) > 0:
		damageBinding(random, d)
	}
}

func damageType(random *rand.Rand, d *syntax.Document) {
	i := random.IntN(len(d.ResourceTypes))
	t := &d.ResourceTypes[i]
	changes := []func(){
		func() { t.Name.Text = otherName(random, t.Name.Text) },
		func() { t.IDPrefix.Text = []string{"pfx000", "ab", "a-b", ""}[random.IntN(4)] },
		func() { d.ResourceTypes = append(d.ResourceTypes, *t) },
		func() { d.ResourceTypes = slices.Delete(d.ResourceTypes, i, i+1) },
	}
	for j := range t.Relationships {
		r := &t.Relationships[j]
		changes = append(changes,
			func() { r.Relation.Text = otherName(random, r.Relation.Text) },
			func() { t.Relationships = append(t.Relationships, *r) },
			func() { r.Targets = damageNames(random, r.Targets) },
		)
	}
	changes[random.IntN(len(changes))]()
}

func damageBinding(random *rand.Rand, d *syntax.Document) {
	i := random.IntN(len(d.Bindings))
	b := &d.Bindings[i]
	changes := []func(){
		func() { d.Bindings = append(d.Bindings, *b) },
		func() { d.Bindings = slices.Delete(d.Bindings, i, i+1) },
		func() { b.Action.Text = otherName(random, b.Action.Text) },
		func() { b.Type.Text = otherName(random, b.Type.Text) },
		func() { b.Conditions = nil },
		func() { b.Conditions = append(b.Conditions, syntax.Condition{}) },
		func() { b.Conditions = append(b.Conditions, syntax.Condition{RoleBinding: true}) },
	}
	for j := range b.Conditions {
		c := &b.Conditions[j]
		changes = append(changes, func() { b.Conditions = append(b.Conditions, *c) })
		if step := c.RelationshipAction; step != nil {
			changes = append(changes,
				func() { step.Relation.Text = otherName(random, step.Relation.Text) },
				func() { step.Action.Text = otherName(random, step.Action.Text) },
				func() { c.RoleBinding = true },
			)
		}
	}
	changes[random.IntN(len(changes))]()
}

// otherName returns another name: one that the policy may have elsewhere, an unknown one, or an invalid one.
func otherName(random *rand.Rand, name string) string {
	names := []string{"get", "list", "create", "get_role", "parent", "owner", "tenant", "project", "server", "all", "role", "user", "elsewhere", strings.ToUpper(name), name + "2"}
	return names[random.IntN(len(names))]
}

func damageNames(random *rand.Rand, names []syntax.Name) []syntax.Name {
	switch i := random.IntN(len(names)); random.IntN(3) {
	case 0:
		return append(slices.Clone(names), names[i])
	case 1:
		return slices.Delete(slices.Clone(names), i, i+1)
	default:
		changed := slices.Clone(names)
		changed[i].Text = otherName(random, changed[i].Text)
		return changed
	}
}
