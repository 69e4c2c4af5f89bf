package model_test

import (
	"fmt"
	"testing"

	"github.com/entail-dev/entail/services/store-sync/model"
)

// BenchmarkMerge100Modules merges and validates a core module and 99 others. In some cases a part of them is wrong in
// three ways, or all were live before.
func BenchmarkMerge100Modules(b *testing.B) {
	for _, broken := range []int{0, 3, 30} {
		for _, live := range []bool{false, true} {
			b.Run(fmt.Sprintf("broken=%d/live=%t", broken, live), func(b *testing.B) { benchmarkMerge(b, broken, live) })
		}
	}
}

func benchmarkMerge(b *testing.B, broken int, live bool) {
	b.Helper()
	var modules []model.Module
	for i := range 97 {
		modules = append(modules, resource(i))
		if live {
			modules[i].Live = modules[i].DSL
		}
	}
	for i := range broken {
		modules[3*i].DSL = []string{
			fmt.Sprintf("module b%d\n\ntype b%d\n  relations\n    define p [user]\n", i, i),
			fmt.Sprintf("module b%d\n\ntype b%d\n  relations\n    define p: [nobody]\n", i, i),
			fmt.Sprintf("module b%d\n\ntype b%d\n  relations\n    define p: [b%d#p]\n", i, i, i),
		}[i%3]
	}
	modules = append(modules,
		named("a", "module a\n\nextend type account\n  relations\n    define a: [user with a]\n\ncondition a(x: int) {\n  x == 1\n}\n"),
		named("b", "module b\n\nextend type account\n  relations\n    define b: [user with b]\n\ncondition b(x: int) {\n  x == 1\n}\n"))
	for b.Loop() {
		if _, err := model.Merge(coreModule(core), modules, model.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMerge800Modules merges many modules of which few can live.
func BenchmarkMerge800Modules(b *testing.B) {
	const count = 800
	for name, text := range map[string]func(i int) string{
		"one type": func(i int) string {
			return fmt.Sprintf("module m%d\n\ntype t\n  relations\n    define p%d: [user]\n", i, i)
		},
		"chain of claims":  func(i int) string { return extensionWith(i, i, i+1) },
		"circle of claims": func(i int) string { return extensionWith(i, i, (i+1)%count) },
		"invalid": func(i int) string {
			return fmt.Sprintf("module m%d\n\ntype t%d\n  relations\n    define p: [t%d#p]\n", i, i, i)
		},
		"without room": func(i int) string { return fmt.Sprintf("module m%d\n\ntype t%d\n", i, i) },
		"circle without room": func(i int) string {
			return fmt.Sprintf("module m%d\n\ntype t%d\n\nextend type t%d\n  relations\n    define p%d: [user]\n", i, i, (i+1)%count, i)
		},
	} {
		b.Run(name, func(b *testing.B) {
			var modules []model.Module
			for i := range count {
				modules = append(modules, named(fmt.Sprintf("m%d", i), text(i)))
			}
			for b.Loop() {
				if _, err := model.Merge(coreModule(core), modules, model.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// extensionWith returns the text of a module that claims two relations, and so conflicts with the module before it and
// the one after it.
func extensionWith(module int, relations ...int) string {
	text := fmt.Sprintf("module m%d\n\nextend type account\n  relations\n    define own%d: [user]\n", module, module)
	for _, r := range relations {
		text += fmt.Sprintf("    define shared%d: [user] or own%d\n", r, module)
	}
	return text
}

func BenchmarkEqual(b *testing.B) {
	var modules []model.Module
	for i := range 97 {
		modules = append(modules, resource(i))
	}
	result, err := model.Merge(coreModule(core), modules, model.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if !model.Equal(result.Model, result.Model) {
			b.Fatal("a model differs from itself")
		}
	}
}
