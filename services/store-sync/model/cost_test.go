package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/openfga/openfga/pkg/typesystem"
	"pgregory.net/rapid"
)

// The estimate of the cost copies OpenFGA's order of walking. This test guards the copy: it finds no subject for
// exactly the relations for which OpenFGA finds none.
func TestCostEstimateEqualsOpenFGAWalk(t *testing.T) {
	types, relations := []string{"a", "b", "c"}, []string{"p", "q", "r", "s"}
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString("module m\n\ntype user\n")
		for _, typ := range types {
			fmt.Fprintf(&b, "\ntype %s\n  relations\n    define up: [%s]\n    define any: [a, b, c]\n", typ, rapid.SampledFrom(types).Draw(t, "up"))
			for i, r := range relations {
				fmt.Fprintf(&b, "    define %s: %s\n", r, rewrite(t, relations, i))
			}
		}
		u := parseModuleText(normalizeText(b.String()), Limits{}.OrDefault())
		if u.broken != "" {
			t.Fatal(u.broken)
		}
		m := newModuleGraph([]*parsedModule{u}).mergeIntoModel(moduleSet{true})
		c := newCostEstimator(m)
		all := slices.SortedFunc(maps.Keys(c.relations), definitionName.compareName)
		nobody := slices.IndexFunc(all, func(n definitionName) bool { return !c.searchEntrypoint(n, c.relations[n].rewrite, visitedRelations{}) })

		_, err := typesystem.NewAndValidate(context.Background(), m)
		var invalid *typesystem.InvalidRelationError
		switch {
		case errors.As(err, &invalid):
			if nobody < 0 || all[nobody] != (definitionName{typ: invalid.ObjectType, rel: invalid.Relation}) {
				t.Fatalf("OpenFGA says %v, the estimate %d of %v\n%s", err, nobody, all, b.String())
			}
		case err != nil:
			t.Fatal(err)
		case nobody >= 0:
			t.Fatalf("OpenFGA finds somebody for %s\n%s", all[nobody], b.String())
		}
	})
}

// rewrite draws a definition for the i-th relation. On its own type it refers only to later ones, to avoid circles.
func rewrite(t *rapid.T, relations []string, i int) string {
	usersets := []string{"a#p", "a#q", "b#p", "b#r", "c#q", "c#s"}
	direct := rapid.SampledFrom([]string{
		"[user]", "[user:*]",
		"[" + strings.Join(rapid.SliceOfNDistinct(rapid.SampledFrom(usersets), 1, 3, rapid.ID[string]).Draw(t, "usersets"), ", ") + "]",
	}).Draw(t, "direct")
	var operands []string
	for _, r := range relations {
		operands = append(operands, r+" from up", r+" from any")
	}
	operand := rapid.SampledFrom(append(operands, relations[i+1:]...))
	one, two, three := operand.Draw(t, "one"), operand.Draw(t, "two"), operand.Draw(t, "three")
	return rapid.SampledFrom([]string{
		direct, one, direct + " or " + one, one + " or " + two + " or " + three, direct + " and " + one, one + " but not (" + two + " and " + three + ")",
	}).Draw(t, "rewrite")
}

func TestCostOfOrdinaryModelsIsLow(t *testing.T) {
	var b strings.Builder
	b.WriteString("module m\n\ntype user\n\ntype group\n  relations\n    define member: [user, group#member]\n")
	for level := range 6 { // a hierarchy in which every one of ten roles implies the next, and is inherited
		fmt.Fprintf(&b, "\ntype level%d\n  relations\n    define parent: [level%d]\n", level, max(level-1, 0))
		fmt.Fprintf(&b, "    define role0: [user, group#member] or role0 from parent\n")
		for role := range 9 {
			fmt.Fprintf(&b, "    define role%d: [user, group#member] or role%d or role%d from parent\n", role+1, role, role+1)
		}
	}
	u := parseModuleText(normalizeText(b.String()), Limits{}.OrDefault())
	if u.broken != "" {
		t.Fatal(u.broken)
	}
	c := newCostEstimator(newModuleGraph([]*parsedModule{u}).mergeIntoModel(moduleSet{true}))
	if err := c.checkTotalCost(); err != nil {
		t.Fatal(err)
	}
	if c.spent > maxCost/100 {
		t.Errorf("the cost is %d, of at most %d", c.spent, maxCost)
	}
}
