package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"

	"github.com/entail-dev/entail/services/store-sync/model"
)

func parsed(t *testing.T, types string) *openfgav1.AuthorizationModel {
	t.Helper()
	m, err := transformer.TransformDSLToProto("model\n  schema 1.1\n" + types)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const library = `
type user
type group
  relations
    define member: [user, group#member]
type folder
  relations
    define viewer: [group#member]
type book
  relations
    define parent: [folder]
    define reader: [user] or viewer from parent
    define editor: [user]
    define critic: reader and editor
    define guest: reader but not editor
`

func TestDiffReportsDefinitionsAndSubjectKinds(t *testing.T) {
	tests := map[string]struct {
		old, new string
		want     []string
	}{
		"nothing":                    {"", "", nil},
		"the order of what is equal": {"[user, group#member]", "[group#member, user]", nil},
		"a relation more": {
			"define editor: [user]\n", "define editor: [user]\n    define owner: [user]\n", []string{`+book#owner "" > "[user]" +user`},
		},
		"a relation less": {
			"    define guest: reader but not editor\n", "", []string{`-book#guest "reader but not editor" > "" -user`},
		},
		"a type more": {"type folder", "type robot\ntype folder", []string{`+robot "" > ""`}},
		"a new kind of reader, by what it refers to": {
			"define viewer: [group#member]", "define viewer: [group#member, user:*]",
			[]string{
				`~book#guest "reader but not editor" > "reader but not editor" +user:*`,
				`~book#reader "[user] or viewer from parent" > "[user] or viewer from parent" +user:*`,
				`~folder#viewer "[group#member]" > "[group#member, user:*]" +user:*`,
			},
		},
		"a way that leads nobody new": {
			"define editor: [user]\n", "define editor: [user] or viewer from parent\n", []string{`~book#editor "[user]" > "[user] or viewer from parent"`},
		},
		"nobody any more": {
			"define editor: [user]\n", "define editor: [folder]\n",
			[]string{`~book#critic "editor and reader" > "editor and reader" -user`, `~book#editor "[user]" > "[folder]" +folder -user`},
		},
	}
	for label, test := range tests {
		t.Run(label, func(t *testing.T) {
			if !strings.Contains(library, test.old) {
				t.Fatalf("the library lacks %q", test.old)
			}
			changes, err := model.Diff(parsed(t, library), parsed(t, strings.Replace(library, test.old, test.new, 1)))
			if err != nil {
				t.Fatal(err)
			}
			if got := lines(changes); !slices.Equal(got, test.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(test.want, "\n  "))
			}
		})
	}
}

// lines renders changes as +type#relation "before" > "after" +gained -lost.
func lines(changes []model.DefinitionChange) []string {
	var all []string
	for _, c := range changes {
		sign := "~"
		switch {
		case c.Added:
			sign = "+"
		case c.Removed:
			sign = "-"
		}
		line := sign + c.Type + c.Condition
		if c.Relation != "" {
			line += "#" + c.Relation
		}
		line += fmt.Sprintf(" %q > %q", c.Before, c.After)
		for _, kind := range c.Gained {
			line += " +" + kind
		}
		for _, kind := range c.Lost {
			line += " -" + kind
		}
		all = append(all, line)
	}
	return all
}

func TestDiffOfConditionsAndEmptyModels(t *testing.T) {
	with := func(limit int) *openfgav1.AuthorizationModel {
		return parsed(t, fmt.Sprintf("type user\ntype book\n  relations\n    define buyer: [user with cheap]\ncondition cheap(price: int) {\n  price < %d\n}\n", limit))
	}
	changes, err := model.Diff(with(10), with(20))
	if got := lines(changes); err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "~cheap") || !strings.Contains(got[0], "20") {
		t.Errorf("a changed condition: %v, %v", got, err)
	}
	changes, err = model.Diff(nil, with(10))
	if got := lines(changes); err != nil || len(got) != 4 || !strings.HasPrefix(got[0], "+") {
		t.Errorf("from nothing: %v, %v", got, err)
	}
	changes, err = model.Diff(with(10), nil)
	if got := lines(changes); err != nil || len(got) != 4 || !strings.HasPrefix(got[0], "-") {
		t.Errorf("to nothing: %v, %v", got, err)
	}
}
