package model_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/entail-dev/entail/services/store-sync/model"
)

// FuzzMerge merges two arbitrary modules with a valid core, and uses one of them as a core.
func FuzzMerge(f *testing.F) {
	for _, seed := range [][2]string{
		{"", "module m\n"},
		{"\v", "module m\n\ntype a\v\n"},
		{"module a\n\nextend type account\n  relations\n    define p: member\n", "module b\n\ntype b\n  relations\n    define p: [account#p]\n"},
		{"module a\n\ntype d\n  relations\n    define p: [user with c]\n\ncondition c(x: int) {\n  x == 1\n}\n", "module b\n\ntype d\n"},
		{"module a\n\ntype t\n  relations\n    define p: q\n    define q: p\n", "module b\n\ntype t\n  relations\n    define p: [t#p]\n"},
		{"model\n  schema 1.1\n\ntype user\n\ncondition c(x: int) {\n  x == 1\n}\n", "module a\n\ntype t\n  relations\n    define p: ((([user]) or (q)))\n"},
		{"module a\n\ntype t\n  relations\n    define p: [user] but not (q from p and r)\n", "module a\n\ncondition c(l: list<string>, m: map<int>) {\n  \"}\" in l # no\n}\n"},
		{"module a\r\n\r\n# comment\r\ntype t # more\r\n", "module a\n\ntype\n  relations\n    define\n\ncondition ("},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		modules := []model.Module{named("a", a), named("b", b)}
		result, err := model.Merge(coreModule(core), modules, model.Limits{})
		if limit := new(model.LimitError); err != nil && !errors.As(err, &limit) {
			t.Fatalf("a module broke the core: %v", err)
		}
		if len(result.Reports) != 3 {
			t.Fatalf("got %d reports", len(result.Reports))
		}
		for _, r := range result.Reports {
			if (r.State == model.Merged) != (r.Message == "") || len(r.Message) > 2000 || !utf8.ValidString(r.Message) || strings.Contains(r.Message, "\n") {
				t.Fatalf("bad report %+v", r)
			}
		}
		again, _ := model.Merge(coreModule(core), []model.Module{modules[1], modules[0]}, model.Limits{})
		if !reflect.DeepEqual(result.Reports, again.Reports) || bytesOf(t, result.Model) != bytesOf(t, again.Model) {
			t.Fatalf("not deterministic:\n%+v\n%+v", result, again)
		}
		if err == nil {
			if _, err := model.RenderDSL(result.Model); err != nil {
				t.Fatal(err)
			}
		}
		_, err = model.Merge(coreModule(a), modules[1:], model.Limits{})
		if core, limit := new(model.CoreError), new(model.LimitError); err != nil && !errors.As(err, &core) && !errors.As(err, &limit) {
			t.Fatalf("error of type %T: %v", err, err)
		}
	})
}
