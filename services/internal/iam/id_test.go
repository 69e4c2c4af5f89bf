package iam

import (
	"slices"
	"strings"
	"testing"
)

func TestNamesOfObjectsAreNeverMistaken(t *testing.T) {
	long := strings.Repeat("a", maxObject)
	ids := []string{
		"a:_b", "a_:b", "a:b", "a%3Ab", "a b", "a#b", "a@b", "*", "ä", "u/a", "a/b", "a", long, long + "a", "%-" + long, "", "\x00", "\n",
	}
	seen := map[string]string{}
	for _, id := range ids {
		name := object(UserType, id)
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %q are both %s", id, other, name)
		}
		seen[name] = id
		if len(name) > maxObject || strings.Count(name, ":") != 1 || strings.ContainsAny(name, " #@*\n\x00ä") {
			t.Errorf("%q is %q", id, name)
		}
	}
	if User("a") == ServiceAccount("a") || slices.Contains([]string{User("sa/a"), User("../sa/a")}, ServiceAccount("a")) {
		t.Error("a user has the name of an account")
	}
	if Object("a/K", "n", "x") == Object("a/K", "m", "x") || Object("a/K", "n", "x") == Object("a/K", "", "n/x") {
		t.Error("two namespaces have one object")
	}
	for _, name := range []string{"", "/", "%", "%25"} {
		if Object("a/K", "", name) == "a/K:"+collection {
			t.Errorf("%q is what stands for no object", name)
		}
	}
}
