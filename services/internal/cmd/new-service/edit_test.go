package main

import (
	"strings"
	"testing"
)

const program = `package p

const (
	First  = "first"
	Second = "second"
)

func inline() []int { return []int{1, 2} }

func lines() []int {
	_ = map[string]int{}
	return []int{
		1,
		2, // Two.
	}
}

func two() ([]int, []int) { return []int{}, []int{} }
`

func TestEditsInsertOneEntryAndLeaveTheRest(t *testing.T) {
	for name, c := range map[string]struct {
		edit      edit
		old, want string
	}{
		"before a line":                {before(`func two\(\).*`, "// Two.\n"), "func two()", "// Two.\nfunc two()"},
		"within a line":                {within(`func inline\(\) \[\]int { return (\[)`, "0, "), "return []int{1, 2}", "return 0, []int{1, 2}"},
		"lines in order":               {inOrder("func ", "func more() {}\n"), "func two", "func more() {}\nfunc two"},
		"the last of lines in order":   {inOrder("func ", "func zero() {}\n"), "[]int{} }\n", "[]int{} }\nfunc zero() {}\n"},
		"a literal in a line":          {element("inline", "[]int", "3"), "{1, 2}", "{1, 2, 3}"},
		"a literal in lines":           {element("lines", "[]int", "3"), "// Two.\n", "// Two.\n\t\t3,\n"},
		"a literal of another type":    {element("lines", "map[string]int", `"a": 1`), "map[string]int{}", `map[string]int{"a": 1}`},
		"a constant with a long name":  {constant("First", `TheThird = "third"`), "", ""},
		"a constant with a short name": {constant("Second", `T = "third"`), "\"second\"\n", "\"second\"\n\tT      = \"third\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.edit([]byte(program))
			if err != nil {
				t.Fatal(err)
			}
			if c.old == "" {
				if !strings.Contains(string(got), "\tSecond   = \"second\"\n\tTheThird = \"third\"\n") {
					t.Errorf("got\n%s", got)
				}
				return
			}
			if want := strings.Replace(program, c.old, c.want, 1); string(got) != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestAnEditThatDoesNotFindItsOnePlaceIsRefused(t *testing.T) {
	for name, change := range map[string]edit{
		"no such line":       before("func three.*", "x"),
		"no such beginning":  inOrder("type", "type t int\n"),
		"part of a line":     before("func two", "x"),
		"two such lines":     before(`func \w+\(\) \[\]int \{.*`, "x"),
		"no such function":   element("three", "[]int", "3"),
		"no such literal":    element("inline", "[]string", "3"),
		"two such literals":  element("two", "[]int", "3"),
		"no such constant":   constant("Third", "X = 1"),
		"what is no program": element("inline", "[]int", "{{"),
	} {
		if got, err := change([]byte(program)); err == nil {
			t.Errorf("%s: got\n%s", name, got)
		}
	}
}
