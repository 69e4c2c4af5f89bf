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
