package model_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/store-sync/model"
)

// extension extends the account type of the core by one relation.
func extension(relation, rewrite string) string {
	return fmt.Sprintf("module %s\n\nextend type account\n  relations\n    define %s: %s\n", relation, relation, rewrite)
}

func TestMergeRejectsBadModuleWithReason(t *testing.T) {
	for name, tt := range map[string]struct {
		dsl     string
		module  string
		message string
	}{
		"empty":                   {"", "", "the module is empty: write DSL that starts with `module <name>`"},
		"white space and comment": {" \n\t\n# type x\n", "", "the module is empty: write DSL that starts with `module <name>`"},
		"whole model": {
			"model\n  schema 1.1\n\ntype x\n  relations\n    define p: [x]\n", "",
			"the source is a whole model, not a module: replace `model` and `schema` by `module <name>`",
		},
		"no header":      {"type x\n", "", "line 1:1: syntax error: "},
		"syntax error":   {"module m\n\n# why\n\ntype x\n  relations\n    define p [user]\n", "m", "line 7:14: syntax error: "},
		"windows":        {"module m\r\n\r\ntype x\r\n  relations\r\n    define p [user]\r\n", "m", "line 5:14: syntax error: "},
		"cut short":      {"module m\n\ntype x\n  relations\n    define", "m", "line 5:11: syntax error: "},
		"not UTF-8":      {"module m\n\ntype \xff\n", "", "the module is not valid UTF-8: save it as UTF-8"},
		"defined twice":  {"module m\n\ntype x\n\ntype x\n", "m", "line 3:6: type x is defined twice in the module: remove one"},
		"relation twice": {"module m\n\ntype x\n  relations\n    define p: [user]\n    define p: [user]\n", "m", "line 6:12: syntax error: 'p' is already defined in 'x'"},
		"own extension twice": {
			"module m\n\ntype x\n  relations\n    define p: [user]\n\nextend type x\n  relations\n    define p: [user]\n", "m",
			"line 5:12: relation p of type x is defined twice in the module: remove one",
		},
		"type of another": {
			"module m\n\ntype role\n", "m",
			"line 3:6: type role is already defined by core: rename it, or extend the existing definition",
		},
		"relation of another": {
			extension("owner", "[user]"), "owner",
			"line 5:12: relation owner of type account is already defined by core: rename it, or extend the existing definition",
		},
		"condition of another": {
			"module m\n\ncondition good(x: int) {\n  x == 2\n}\n", "m",
			"line 3:11: condition good is already defined by authorizationmodel/good: rename it, or extend the existing definition",
		},
		"extends nothing": {
			"module m\n\nextend type nothing\n  relations\n    define p: [user]\n", "m",
			"line 3:13: the module extends type nothing, which no module defines: define it, or correct the name",
		},
		"unknown type": {
			extension("p", "[nobody]"), "p",
			"line 5:12: relation p of type account refers to type nobody, which no module defines: define it, or correct the name",
		},
		"unknown relation of a type": {
			extension("p", "[role#nothing]"), "p",
			"line 5:12: relation p of type account refers to relation nothing of type role, which no module defines: define it, or correct the name",
		},
		"unknown relation": {
			extension("p", "nothing or owner"), "p",
			"line 5:12: relation p of type account refers to relation nothing of type account, which no module defines: define it, or correct the name",
		},
		"unknown condition": {
			extension("p", "[user with nothing]"), "p",
			"line 5:12: relation p of type account refers to condition nothing, which no module defines: define it, or correct the name",
		},
		"from a relation that is not direct": {
			extension("p", "owner from member"), "p",
			"line 5:12: relation p of type account uses `owner from member`, but from needs a relation of the form [type]: change that relation",
		},
		"nothing to have from": {
			extension("p", "nothing from parent"), "p",
			"line 5:12: relation p of type account uses `nothing from parent`, but no type that parent leads to has a relation nothing: define it there",
		},
		"circle": {
			"module m\n\nextend type account\n  relations\n    define p: q\n    define q: p\n", "m",
			"line 5:12: relation p of type account is defined by itself, in a circle: break the circle",
		},
		"for nobody": {
			"module m\n\ntype x\n  relations\n    define p: [x#p]\n", "m",
			"line 5:12: relation p of type x can never hold for anybody: give it, or a relation it refers to, a type such as [user]",
		},
		"condition that does not compile": {
			"module m\n\ncondition c(x: int) {\n  y == 1\n}\n", "m",
			"line 3:11: OpenFGA refuses condition c: failed to compile expression on condition 'c' - ERROR: c:1:1: undeclared reference to 'y'",
		},
		"condition that is not true or false": {
			"module m\n\ncondition c(x: int) {\n  x\n}\n", "m",
			"line 3:11: OpenFGA refuses condition c: failed to compile expression on condition 'c' - expected a bool condition expression output",
		},
		"long expression": {
			"module m\n\ncondition c(x: int) {\n  x == 1" + strings.Repeat(" || x == 1", 60) + "\n}\n", "m",
			"line 3:11: OpenFGA refuses condition c: invalid Condition.Expression: value length must be at most 512 bytes",
		},
		"inline expression": {
			extension("p", "[user with $expression]"), "p",
			"line 5:12: relation p of type account: inline expressions are an experiment in OpenFGA: give the condition a name",
		},
		"reserved word": {
			extension("self", "[user]"), "self",
			`line 5:12: relation self of type account: "self" is a word that OpenFGA reserves: choose another name`,
		},
		"long name of a relation": {
			extension(strings.Repeat("p", 51), "[user]"), strings.Repeat("p", 51),
			"the module's name has 51 characters, of at most 50: shorten it; " +
				"line 5:12: relation " + strings.Repeat("p", 51) + " of type account: the name has 51 characters, of at most 50: shorten it",
		},
		"too many bytes": {
			"module m\n\ntype " + strings.Repeat("x", 300_000) + "\n", "",
			"the module has 300015 bytes, of at most 262144: split it or shorten it",
		},
		"long line": {
			"module m\n\ntype x\n  relations\n    define p: [user" + strings.Repeat(", user", 2000) + "]\n", "",
			"line 5 has 12020 bytes, of at most 8192: give parts of the definition names, as relations of their own",
		},
		"deep brackets": {
			extension("p", strings.Repeat("(", 40)+"owner or member"+strings.Repeat(")", 40)), "",
			"line 5: too many brackets inside brackets: give the inner parts names, as relations of their own",
		},
		"many conditions": {
			"module m\n" + strings.Repeat("\ncondition c(x: int) {\n  x == 1\n}\n", 600), "",
			"the conditions of the module have 19800 bytes, of at most 16384: shorten them or split the module",
		},
	} {
		t.Run(name, func(t *testing.T) {
			good := named("good", "module good\n\nextend type account\n  relations\n    define good: [user with good]\n\ncondition good(x: int) {\n  x == 1\n}\n")
			alone := mustMerge(t, good)
			both := mustMerge(t, good, named("wrong", tt.dsl))
			if bytesOf(t, both.Model) != bytesOf(t, alone.Model) {
				t.Error("the bad module changed the model")
			}
			if states(both.Reports)[good.Origin] != model.Merged {
				t.Error("the good module does not live")
			}
			r := both.Reports[2]
			if r.State != model.Rejected || r.Module != tt.module || !strings.HasPrefix(r.Message, tt.message) {
				t.Errorf("report is %+v", r)
			}
		})
	}
}

func TestMergeAcceptsMutualDependencies(t *testing.T) {
	a := named("a", "module a\n\ntype folder\n  relations\n    define parent: [drive]\n    define viewer: [user] or viewer from parent\n")
	b := named("b", "module b\n\ntype drive\n  relations\n    define viewer: [user, folder#viewer]\n\nextend type folder\n  relations\n    define editor: [user]\n")
	for _, r := range mustMerge(t, a, b).Reports {
		if r.State != model.Merged {
			t.Errorf("report is %+v", r)
		}
	}
}

func TestMergeConflictRejectsLaterModule(t *testing.T) {
	first := "module first\n\ntype x\n"
	for name, tt := range map[string]struct {
		modules []model.Module
		want    map[string]model.MergeState
	}{
		"both are good": {
			[]model.Module{named("a", first), named("b", "module second\n\ntype x\n  relations\n    define p: [user]\n")},
			map[string]model.MergeState{"a": model.Merged, "b": model.Rejected},
		},
		"the earlier refers to nothing": {
			[]model.Module{named("a", "module first\n\ntype x\n  relations\n    define p: [nobody]\n"), named("b", first)},
			map[string]model.MergeState{"a": model.Rejected, "b": model.Merged},
		},
		"the earlier is invalid": {
			[]model.Module{named("a", "module first\n\ntype x\n  relations\n    define p: [x#p]\n"), named("b", first)},
			map[string]model.MergeState{"a": model.Rejected, "b": model.Merged},
		},
		"the earlier needs the later": {
			[]model.Module{
				named("a", "module first\n\ntype x\n  relations\n    define p: [y]\n"),
				named("b", "module second\n\ntype x\n\ntype y\n"),
			},
			map[string]model.MergeState{"a": model.Rejected, "b": model.Merged},
		},
		"a third needs the one that gives way": {
			[]model.Module{named("a", first), named("b", "module second\n\ntype x\n\ntype y\n"), named("c", "module third\n\ntype z\n  relations\n    define p: [y]\n")},
			map[string]model.MergeState{"a": model.Merged, "b": model.Rejected, "c": model.Rejected},
		},
		"an earlier one that needs the later does not lend it its place": {
			[]model.Module{
				named("a", "module first\n\ntype z\n  relations\n    define p: [x#p]\n"), named("b", first),
				named("c", "module third\n\ntype x\n  relations\n    define p: [user]\n"),
			},
			map[string]model.MergeState{"a": model.Rejected, "b": model.Merged, "c": model.Rejected},
		},
		"the one in between makes itself impossible": {
			[]model.Module{
				named("a", "module first\n\ntype x\n  relations\n    define p: [z]\n"),
				named("b", "module second\n\ntype y\n  relations\n    define p: [x]\n"), named("c", "module third\n\ntype y\n\ntype z\n"),
			},
			map[string]model.MergeState{"a": model.Merged, "b": model.Rejected, "c": model.Merged},
		},
		"the same text twice": {
			[]model.Module{named("a", first), named("b", "# copied\n"+first+"\n\n")},
			map[string]model.MergeState{"a": model.Merged, "b": model.Duplicate},
		},
		"the same wrong text twice": {
			[]model.Module{named("a", extension("p", "[nobody]")), named("b", extension("p", "[nobody]"))},
			map[string]model.MergeState{"a": model.Rejected, "b": model.Rejected},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range mustMerge(t, tt.modules...).Reports[1:] {
				if r.State != tt.want[r.Origin.Name] {
					t.Errorf("report is %+v", r)
				}
			}
		})
	}
}

func TestMergeReportsDependencyOnRejectedModule(t *testing.T) {
	result := mustMerge(t,
		named("a", "module a\n\ntype x\n  relations\n    define p: [nobody]\n"),
		named("b", "module b\n\ntype y\n  relations\n    define p: [x]\n"))
	const want = "line 5:12: relation p of type y refers to type x, which authorizationmodel/a defines, but that is rejected itself: correct it first"
	if got := result.Reports[2].Message; got != want {
		t.Errorf("got %q", got)
	}
}

func TestMergeFindsFaultyModuleOfInvalidPair(t *testing.T) {
	// "p" sorts before "q", so that OpenFGA names the relation of the innocent module a.
	a := named("a", "module a\n\ntype x\n  relations\n    define p: [y#q]\n")
	b := named("b", "module b\n\ntype y\n  relations\n    define q: [y#q]\n")
	c := named("c", "module c\n\ntype y\n  relations\n    define q: [user]\n")
	result := mustMerge(t, a, b, c)
	for i, want := range []model.MergeState{model.Merged, model.Merged, model.Rejected, model.Merged} {
		if result.Reports[i].State != want {
			t.Errorf("report is %+v", result.Reports[i])
		}
	}
}

func TestMergeCoreModuleCannotBeReplaced(t *testing.T) {
	for name, tt := range map[string]struct {
		core    string
		modules []model.Module
		message string
	}{
		"does not parse":        {"module core\n\ntype", nil, "line 3:5: syntax error"},
		"is empty":              {"", nil, "the module is empty"},
		"defines no type":       {"module core\n", nil, "no module defines a type: start with one, such as `type user`"},
		"refers to nothing":     {core + "    define p: [nobody]\n", nil, "line 14:12: relation p of type account refers to type nobody"},
		"refers to a bad one":   {core + "    define p: [x]\n", []model.Module{named("a", "module a\n\ntype x\n  relations\n    define p: [nobody]\n")}, "line 14:12:"},
		"refers to a good one":  {core + "    define p: [x]\n", []model.Module{named("a", "module a\n\ntype x\n")}, ""},
		"conflicts with others": {core, []model.Module{named("a", "module a\n\ntype user\n")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := model.Merge(coreModule(tt.core), tt.modules, model.Limits{})
			if len(result.Reports) != len(tt.modules)+1 {
				t.Errorf("got %d reports", len(result.Reports))
			}
			if tt.message == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var refused *model.CoreError
			if !errors.As(err, &refused) || result.Model != nil {
				t.Fatalf("got %v", err)
			}
			if !strings.HasPrefix(refused.Message, tt.message) {
				t.Errorf("got %q", refused.Message)
			}
		})
	}
}

func TestMergeReportsLimitsExceeded(t *testing.T) {
	var many []model.Module
	for i := range 98 {
		many = append(many, resource(i))
	}
	conditions := func(module string, n int) model.Module {
		var b strings.Builder
		fmt.Fprintf(&b, "module %s\n", module)
		for i := range n {
			fmt.Fprintf(&b, "\ncondition %s%d(x: int) {\n  x == 1\n}\n", module, i)
		}
		return named(module, b.String())
	}
	for name, tt := range map[string]struct {
		modules []model.Module
		limits  model.Limits
		message string
		left    int
	}{
		"as many types as allowed":      {many[:97], model.Limits{}, "", 0},
		"one type too many":             {many, model.Limits{}, "101 types, of at most 100; ", 1},
		"more types allowed":            {many, model.Limits{Types: 101}, "", 0},
		"bytes":                         {many[:50], model.Limits{Bytes: 20000}, " bytes, of at most 20000; ", 27},
		"as many conditions as allowed": {[]model.Module{conditions("a", 20), conditions("b", 5)}, model.Limits{}, "", 0},
		"one condition too many":        {[]model.Module{conditions("a", 20), conditions("b", 6)}, model.Limits{}, "26 conditions, of at most 25; ", 1},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := model.Merge(coreModule(core), tt.modules, tt.limits)
			if err != nil || len(result.Reports) != len(tt.modules)+1 {
				t.Fatalf("got %d reports: %v", len(result.Reports), err)
			}
			left := 0
			for _, r := range result.Reports {
				if r.State == model.Merged {
					continue
				}
				left++
				if !r.Exceeds || tt.message == "" || !strings.Contains(r.Message, tt.message) {
					t.Errorf("report is %+v", r)
				}
			}
			if left != tt.left {
				t.Errorf("%d modules are left out, want %d", left, tt.left)
			}
		})
	}
}

func TestMergeRejectsTooLargeModuleAlone(t *testing.T) {
	var b strings.Builder
	b.WriteString("module m\n")
	for i := range 101 {
		fmt.Fprintf(&b, "\ntype t%d\n", i)
	}
	r := mustMerge(t, named("m", b.String())).Reports[1]
	if r.State != model.Rejected || r.Message != "the module has 101 types, of at most 100 in the whole model: shorten it" {
		t.Errorf("report is %+v", r)
	}
}

func TestMergeReportsAreInCanonicalOrder(t *testing.T) {
	origins := []model.ModuleOrigin{
		{Kind: model.AuthorizationModel, Name: "b"},
		{Kind: model.AuthorizationModel, Scope: "a", Name: "z"},
		{Kind: model.AuthorizationModel, Scope: "a-b", Name: "a"},
		{Kind: model.Policy, Name: "a"},
		{Kind: model.IAM},
		{Kind: model.Discovered, Scope: "a", Name: "a"},
	}
	var modules []model.Module
	for i := range origins {
		i = len(origins) - 1 - i
		modules = append(modules, model.Module{Origin: origins[i], DSL: extension(fmt.Sprintf("p%d", i), "[user]")})
	}
	want := []string{"core", "authorizationmodel/b", "authorizationmodel/a/z", "authorizationmodel/a-b/a", "policydocument/a", "iam", "discovered/a/a"}
	for i, r := range mustMerge(t, modules...).Reports {
		if r.Origin.String() != want[i] {
			t.Errorf("module %d is %s, want %s", i, r.Origin, want[i])
		}
	}
}

func TestDefinitionsHaveOrigins(t *testing.T) {
	a := named("a", "module mine\n\nextend type role\n  relations\n    define p: [user with c]\n\ntype x\n  relations\n    define p: [user]\n\ncondition c(x: int) {\n  x == 1\n}\n")
	result := mustMerge(t, a)
	got := map[string]string{}
	for _, d := range result.Definitions {
		got[strings.Join([]string{d.Type, d.Relation, d.Condition}, ",")] = d.Module + " of " + d.Origin.String()
	}
	for part, want := range map[string]string{
		"role,,": "core of core", "role,assignee,": "core of core", "role,p,": "mine of authorizationmodel/a",
		"x,,": "mine of authorizationmodel/a", "x,p,": "mine of authorizationmodel/a", ",,c": "mine of authorizationmodel/a",
	} {
		if got[part] != want {
			t.Errorf("%s comes from %q, want %q", part, got[part], want)
		}
	}
	for i, d := range model.ListDefinitions(result.Model) {
		if want := result.Definitions[i]; d.Module != want.Module || d.Type != want.Type {
			t.Errorf("the model tells %+v, the merge %+v", d, want)
		}
	}
}

func TestMergeRefusesHostileModulesEarly(t *testing.T) {
	hostile := map[string]string{}
	var b strings.Builder
	b.WriteString("module m\n\ntype x\n  relations\n    define r0: [user]\n")
	for i := range 60 {
		fmt.Fprintf(&b, "    define r%d: r%d or r%d\n", i+1, i, i)
	}
	hostile["two ways at each of sixty steps"] = b.String()
	b.Reset()
	b.WriteString("module m\n")
	for i := range 30 {
		fmt.Fprintf(&b, "\ntype t%d\n  relations\n    define m: [", i)
		for j := range 30 {
			fmt.Fprintf(&b, "t%d#m, ", j)
		}
		fmt.Fprintf(&b, "user]\n")
	}
	hostile["thirty types that lead to each other"] = b.String()
	hostile["the same, with nobody in all but one"] = strings.ReplaceAll(b.String(), ", user]", "]") + "\nextend type t0\n  relations\n    define n: [user]\n"
	b.Reset()
	b.WriteString("module m\n\ntype t0\n  relations\n    define m: [user]\n")
	for i := range 60 {
		fmt.Fprintf(&b, "\ntype t%d\n  relations\n    define p: [t%d]\n    define m: m from p and m from p\n", i+1, i)
	}
	hostile["two ways up at each of sixty types"] = b.String()
	b.Reset()
	b.WriteString("module m\n\ntype x\n  relations\n    define r0: [user]\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "    define r%d: r%d\n", i+1, i)
	}
	hostile["a chain of three thousand"] = b.String()
	for name, dsl := range hostile {
		t.Run(name, func(t *testing.T) {
			good := named("z", extension("p", "[user]"))
			result := mustMerge(t, named("hostile", dsl), good)
			if r := result.Reports[1]; r.State != model.Rejected || !strings.Contains(r.Message, "too long to validate") {
				t.Errorf("report is %+v", r)
			}
			if states(result.Reports)[good.Origin] != model.Merged {
				t.Error("the good module does not live")
			}
		})
	}
	t.Run("twenty thousand empty lines", func(t *testing.T) {
		if r := mustMerge(t, named("a", "module a\n"+strings.Repeat("\n", 20000)+"type x\n")).Reports[1]; r.State != model.Merged {
			t.Errorf("report is %+v", r)
		}
	})
}
