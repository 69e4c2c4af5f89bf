package model_test

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	"github.com/openfga/openfga/pkg/typesystem"
	"pgregory.net/rapid"

	"github.com/entail-dev/entail/services/store-sync/model"
)

func TestMergeIsIndependentOfOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		modules := randomModules(t, 20)
		first, err := model.Merge(coreModule(core), modules, model.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		second, err := model.Merge(coreModule(core), rapid.Permutation(modules).Draw(t, "order"), model.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if bytesOf(t, first.Model) != bytesOf(t, second.Model) {
			t.Fatal("the order of the modules changed the bytes of the model")
		}
		if !reflect.DeepEqual(first.Reports, second.Reports) {
			t.Fatalf("the order of the modules changed the reports:\n%v\n%v", first.Reports, second.Reports)
		}
		if !reflect.DeepEqual(first.Definitions, second.Definitions) {
			t.Fatal("the order of the modules changed the definitions")
		}
	})
}

func TestMergeRejectedModuleDoesNotAffectOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		modules := randomModules(t, rapid.IntRange(1, 10).Draw(t, "count"))
		all, err := model.Merge(coreModule(core), modules, model.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all.Reports {
			if r.State != model.Rejected {
				continue
			}
			if r.Message == "" {
				t.Fatalf("%s is rejected without a reason", r.Origin)
			}
			fewer, err := model.Merge(coreModule(core), without(modules, r.Origin), model.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if bytesOf(t, all.Model) != bytesOf(t, fewer.Model) {
				t.Fatalf("taking %s away changed the model", r.Origin)
			}
			want := states(all.Reports)
			delete(want, r.Origin)
			if got := states(fewer.Reports); !maps.Equal(got, want) {
				t.Fatalf("taking %s away changed the states:\n%v\n%v", r.Origin, got, want)
			}
		}
	})
}

// combine merges modules with OpenFGA's own tools, which accept either all of them or none.
func combine(modules []model.Module) (*openfgav1.AuthorizationModel, error) {
	files := []transformer.ModuleFile{{Name: "core", Contents: core}}
	for _, m := range modules {
		files = append(files, transformer.ModuleFile{Name: m.Origin.String(), Contents: m.DSL})
	}
	combined, err := transformer.TransformModuleFilesToModel(files, "1.2")
	if err != nil {
		return nil, err
	}
	_, err = typesystem.NewAndValidate(context.Background(), combined)
	return combined, err
}

func TestMergeEqualsOpenFGATools(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		modules := randomModules(t, rapid.IntRange(1, 10).Draw(t, "count"))
		result, err := model.Merge(coreModule(core), modules, model.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		state := states(result.Reports)
		merged := slices.DeleteFunc(slices.Clone(modules), func(m model.Module) bool { return state[m.Origin] != model.Merged })
		want, err := combine(merged)
		if err != nil {
			t.Fatalf("OpenFGA refuses the merged modules: %v", err)
		}
		if !model.Equal(result.Model, want) {
			t.Fatalf("the models differ:\n%v\n%v", result.Model, want)
		}
		for _, m := range modules {
			if state[m.Origin] != model.Rejected || m.DSL == "" {
				continue
			}
			if _, err := combine(append(slices.Clone(merged), m)); err == nil {
				t.Fatalf("%s could have lived, but: %v", m.Origin, result.Reports)
			}
		}
	})
}
