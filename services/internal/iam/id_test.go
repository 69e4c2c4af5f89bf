package iam

import (
	"slices"
	"strings"
	"testing"
)

func TestOpenFGAObjectsAreUnique(t *testing.T) {
	long := strings.Repeat("a", maxObject)
	ids := []string{
		"a:_b", "a_:b", "a:b", "a%3Ab", "a b", "a#b", "a@b", "*", "ä", "u/a", "a/b", "a", long, long + "a", "%-" + long, "", "\x00", "\n",
	}
	seen := map[string]string{}
	for _, id := range ids {
		name := escapedObjectName(UserType, id)
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %q are both %s", id, other, name)
		}
		seen[name] = id
		if len(name) > maxObject || strings.Count(name, ":") != 1 || strings.ContainsAny(name, " #@*\n\x00ä") {
			t.Errorf("%q is %q", id, name)
		}
	}
	if UserSubject("a") == ServiceAccountSubject("a") || slices.Contains([]string{UserSubject("sa/a"), UserSubject("../sa/a")}, ServiceAccountSubject("a")) {
		t.Error("a user has the name of an account")
	}
	if OpenFGAObject("a/K", "n", "x") == OpenFGAObject("a/K", "m", "x") || OpenFGAObject("a/K", "n", "x") == OpenFGAObject("a/K", "", "n/x") {
		t.Error("objects of two namespaces have the same name")
	}
	for _, name := range []string{"", "/", "%", "%25"} {
		if OpenFGAObject("a/K", "", name) == "a/K:"+unnamedObjectID {
			t.Errorf("Object of name %q equals the object of the whole kind", name)
		}
	}
}

func TestSplitContextDividesLargeCheck(t *testing.T) {
	c := OpenFGACheck{Tuple: Tuple{"u", "r", "o"}, Context: []Tuple{{"p", parentRelation, "o"}}}
	for _, group := range []string{"a", "b", "c", "d", "e"} {
		c.Context = append(c.Context, Tuple{"u", memberRelation, TokenGroupObject(group)})
	}
	for most, want := range map[int][]int{6: {6}, 5: {5, 2}, 3: {3, 3, 2}, 2: {2, 2, 2, 2, 2}, 1: {6}} {
		asked := map[Tuple]bool{}
		parts := c.SplitContext(most)
		for i, part := range parts {
			if part.Tuple != c.Tuple || part.Context[0] != c.Context[0] || i >= len(want) || len(part.Context) != want[i] {
				t.Errorf("of at most %d tuples, part %d is %+v", most, i, part)
			}
			for _, tuple := range part.Context {
				asked[tuple] = true
			}
		}
		if len(parts) != len(want) || len(asked) != len(c.Context) {
			t.Errorf("limit of %d tuples: got %d parts with %d tuples", most, len(parts), len(asked))
		}
	}
}
