package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/entail-dev/entail/services/store-sync/model"
)

// core is a core module that most tests start from.
const core = `module core

type user

type role
  relations
    define assignee: [user, user:*]

type account
  relations
    define parent: [account]
    define owner: [role#assignee] or owner from parent
    define member: [role#assignee] or owner or member from parent
`

func coreModule(dsl string) model.Module { return model.Module{DSL: dsl} }

// named returns the module of an AuthorizationModel.
func named(name, dsl string) model.Module {
	return model.Module{Origin: model.ModuleOrigin{Kind: model.AuthorizationModel, Name: name}, DSL: dsl}
}

// resource returns a module of the form that discovery generates.
func resource(i int) model.Module {
	dsl := strings.NewReplacer("G", fmt.Sprintf("group%d_example_org", i), "P", fmt.Sprintf("things%d", i), "S", fmt.Sprintf("thing%d", i)).Replace(`module P

extend type account
  relations
    define create_G_P: owner
    define list_G_P: member
    define watch_G_P: member

type G_S
  relations
    define parent: [account]
    define member: [role#assignee] or owner or member from parent
    define owner: [role#assignee] or owner from parent
    define get: member
    define watch: member
    define update: member
    define delete: member
    define patch: member
    define manage_iam_roles: owner
    define get_iam_roles: member
    define get_iam_users: member
`)
	return model.Module{Origin: model.ModuleOrigin{Kind: model.Discovered, Scope: fmt.Sprintf("group%d.example.org", i), Name: fmt.Sprintf("things%d", i)}, DSL: dsl}
}

// testingT is a test, or a check of one property.
type testingT interface {
	Fatalf(format string, args ...any)
}

// bytesOf marshals a model as the transport does, but deterministically.
func bytesOf(t testingT, m *openfgav1.AuthorizationModel) string {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatalf("marshalling the model: %v", err)
	}
	return string(b)
}

// mustMerge merges modules that have a model.
func mustMerge(t *testing.T, modules ...model.Module) model.MergeResult {
	t.Helper()
	result, err := model.Merge(coreModule(core), modules, model.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// states returns the state of every module, by origin.
func states(reports []model.ModuleReport) map[model.ModuleOrigin]model.MergeState {
	all := map[model.ModuleOrigin]model.MergeState{}
	for _, r := range reports {
		all[r.Origin] = r.State
	}
	return all
}

// randomModules draws modules that need each other, conflict, and have many kinds of errors.
func randomModules(t *rapid.T, count int) []model.Module {
	var all []model.Module
	for i := range count {
		all = append(all, named(fmt.Sprintf("m%02d", i), randomDSL(t, i)))
	}
	return all
}

func randomDSL(t *rapid.T, i int) string {
	if rapid.IntRange(0, 19).Draw(t, "unreadable") == 0 {
		return rapid.SampledFrom([]string{"", "model\n  schema 1.1\ntype x\n", "module m\ntype\n", "module m\n\ntype a\n  relations\n    define p q\n"}).Draw(t, "dsl")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "module m%d\n", i)
	for _, typ := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "account"}), 0, 2, rapid.ID[string]).Draw(t, "types") {
		if typ == "account" || rapid.IntRange(0, 3).Draw(t, "extend") == 0 {
			fmt.Fprintf(&b, "\nextend type %s\n", typ)
		} else {
			fmt.Fprintf(&b, "\ntype %s\n", typ)
		}
		relations := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p", "q", "r", "s", "up"}), 0, 4, rapid.ID[string]).Draw(t, "relations")
		if len(relations) > 0 {
			b.WriteString("  relations\n")
		}
		for _, relation := range relations {
			fmt.Fprintf(&b, "    define %s: %s\n", relation, randomRewrite(t, relation))
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "condition") == 0 {
		expression := rapid.SampledFrom([]string{"x == 1", "x == 1", "y == 1", "x"}).Draw(t, "expression")
		fmt.Fprintf(&b, "\ncondition %s(x: int) {\n  %s\n}\n", rapid.SampledFrom([]string{"k", "l"}).Draw(t, "name"), expression)
	}
	return b.String()
}

func randomRewrite(t *rapid.T, relation string) string {
	if relation == "up" { // what others take relations from
		return rapid.SampledFrom([]string{"[account]", "[a]", "[b]", "[c]", "[d]", "[a, b]", "[a, c]", "[a#p]"}).Draw(t, "up")
	}
	direct := rapid.SampledFrom([]string{"[user]", "[user]", "[user, user:*]", "[a]", "[b]", "[a#p]", "[b#q]", "[c#r]", "[account#p]", "[user with k]"})
	other := rapid.SampledFrom([]string{"p", "q", "r", "s", "p from up", "q from up", "r from up", "owner from up", "p from p"})
	switch rapid.IntRange(0, 7).Draw(t, "form") {
	case 0, 1:
		return other.Draw(t, "one")
	case 2:
		return direct.Draw(t, "one") + " or " + other.Draw(t, "two")
	case 3:
		return direct.Draw(t, "one") + " and " + other.Draw(t, "two")
	case 4:
		return other.Draw(t, "one") + " but not " + other.Draw(t, "two")
	default:
		return direct.Draw(t, "one")
	}
}

func without(modules []model.Module, origin model.ModuleOrigin) []model.Module {
	return slices.DeleteFunc(slices.Clone(modules), func(m model.Module) bool { return m.Origin == origin })
}
