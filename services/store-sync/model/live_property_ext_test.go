package model_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/entail-dev/entail/services/store-sync/model"
)

const typo = "module m\n\ntype x\n  relations\n    define p [user]\n"

// withRecordedLiveTexts draws the core module and some others after a history of edits, each with its recorded live
// text.
func withRecordedLiveTexts(t *rapid.T) []model.Module {
	modules := append([]model.Module{coreModule(core)}, randomModules(t, rapid.IntRange(1, 6).Draw(t, "count"))...)
	for i := range modules[1:] {
		modules[i+1].Created = time.Unix(rapid.Int64Range(0, 3).Draw(t, "created"), 0)
	}
	modules = withLiveTextsOf(t, modules)
	for range rapid.IntRange(0, 3).Draw(t, "edits") {
		i := rapid.IntRange(1, len(modules)-1).Draw(t, "edited")
		modules[i].DSL = randomDSL(t, i-1)
		modules = withLiveTextsOf(t, modules)
	}
	return modules
}

func mergeAll(t testingT, modules []model.Module) model.MergeResult {
	result, err := model.Merge(modules[0], modules[1:], model.Limits{})
	if err != nil {
		t.Fatalf("merging: %v", err)
	}
	return result
}

// withLiveTextsOf returns the modules with the live texts of their merge.
func withLiveTextsOf(t testingT, modules []model.Module) []model.Module {
	live := map[model.ModuleOrigin]string{}
	for _, r := range mergeAll(t, modules).Reports {
		live[r.Origin] = r.Live
	}
	modules = slices.Clone(modules)
	for i := range modules {
		modules[i].Live = live[modules[i].Origin]
	}
	return modules
}

// meaning returns the definitions of a model, each as text.
func meaning(m *openfgav1.AuthorizationModel) map[string]string {
	all := map[string]string{}
	for _, t := range m.GetTypeDefinitions() {
		all[t.GetType()] = ""
		for n, r := range t.GetRelations() {
			b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(r)
			all[t.GetType()+"#"+n] = fmt.Sprintf("%x %v", b, t.GetMetadata().GetRelations()[n].GetDirectlyRelatedUserTypes())
		}
	}
	for n, c := range m.GetConditions() {
		all["condition "+n] = c.GetExpression()
	}
	return all
}

func TestMergeDependsOnTextsAndLiveTextsOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		modules := withRecordedLiveTexts(t)
		i := rapid.IntRange(1, len(modules)-1).Draw(t, "edited")
		modules[i].DSL = randomDSL(t, i-1)
		first := mergeAll(t, modules)
		second := mergeAll(t, append(modules[:1:1], rapid.Permutation(modules[1:]).Draw(t, "order")...))
		if bytesOf(t, first.Model) != bytesOf(t, second.Model) || !reflect.DeepEqual(first.Reports, second.Reports) {
			t.Fatalf("the order of the modules makes a difference:\n%v\n%v", first.Reports, second.Reports)
		}
	})
}

func TestMergeOfRecordedTextsIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		modules := withRecordedLiveTexts(t)
		before := mergeAll(t, modules)
		if again := mergeAll(t, withLiveTextsOf(t, modules)); !model.Equal(before.Model, again.Model) {
			t.Fatalf("the next merge is another:\n%v\n%v", before.Reports, again.Reports)
		}
	})
}

func TestMergeInvalidEditsDoNotRemoveDefinitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		modules := withRecordedLiveTexts(t)
		before := mergeAll(t, modules)
		for i := range modules {
			if rapid.Bool().Draw(t, "typo") {
				modules[i].DSL = typo
			}
		}
		after := mergeAll(t, modules)
		if !model.Equal(before.Model, after.Model) {
			t.Fatalf("typos changed the model:\n%v\n%v", before.Reports, after.Reports)
		}
	})
}

func TestMergeNewModuleDoesNotTakeDefinitionsOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		modules := withRecordedLiveTexts(t)
		before := meaning(mergeAll(t, modules).Model)
		modules = append(modules, named("a", randomDSL(t, 99)))
		result := mergeAll(t, modules)
		after := meaning(result.Model)
		for n, was := range before {
			if is, there := after[n]; !there || is != was {
				t.Fatalf("%s was %q and is %q: %v", n, was, is, result.Reports)
			}
		}
	})
}

// owners returns for every type of a model the module that defines it.
func owners(r model.MergeResult) map[string]model.ModuleOrigin {
	all := map[string]model.ModuleOrigin{}
	for _, d := range r.Definitions {
		if d.Relation == "" && d.Type != "" {
			all[d.Type] = d.Origin
		}
	}
	return all
}

func types(module string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "module %s\n", module)
	for _, n := range names {
		fmt.Fprintf(&b, "\ntype %s\n", n)
	}
	return b.String()
}

// This test compares the merge with a simple model of claims, for modules without needs.
func TestMergeGivesDefinitionToBestClaim(t *testing.T) {
	draw := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 3, rapid.ID[string])
	rapid.Check(t, func(t *rapid.T) {
		wants, lives := map[model.ModuleOrigin][]string{}, map[model.ModuleOrigin][]string{}
		coreNames := append([]string{"user"}, draw.Draw(t, "core")...)
		modules := []model.Module{{DSL: types("core", coreNames), Live: types("core", []string{"user"})}}
		wants[model.ModuleOrigin{}] = coreNames
		taken := map[string]bool{"user": true}
		for i := range rapid.IntRange(1, 5).Draw(t, "count") {
			m := named(fmt.Sprintf("m%d", i), "")
			m.Created = time.Unix(rapid.Int64Range(0, 2).Draw(t, "created"), 0)
			lives[m.Origin] = slices.DeleteFunc(draw.Draw(t, "live"), func(n string) bool { return taken[n] })
			for _, n := range lives[m.Origin] {
				taken[n] = true
			}
			wants[m.Origin] = draw.Draw(t, "wants")
			m.Live, m.DSL = types(m.Origin.Name, lives[m.Origin]), types(m.Origin.Name, wants[m.Origin])
			if m.DSL == "" {
				m.DSL = typo
			}
			modules = append(modules, m)
		}
		result, err := model.Merge(modules[0], modules[1:], model.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		is, state := owners(result), states(result.Reports)
		for _, m := range modules[1:] {
			o := m.Origin
			for _, n := range wants[o] {
				switch owner := is[n]; {
				case state[o] == model.Merged && owner != o:
					t.Fatalf("%s is merged, and %s is of %s", o, n, owner)
				case state[o] == model.Merged:
					for holder, names := range lives {
						if holder != o && slices.Contains(names, n) && state[holder] != model.Merged &&
							!slices.Contains(lives[o], n) && (len(wants[holder]) == 0 || slices.Contains(wants[holder], n)) {
							t.Fatalf("%s took %s from %s", o, n, holder)
						}
					}
				}
			}
			for _, n := range lives[o] {
				owner, there := is[n]
				dropped := len(wants[o]) > 0 && !slices.Contains(wants[o], n)
				switch {
				case !there && !dropped:
					t.Fatalf("%s is gone, and %s has it still: %v", n, o, result.Reports)
				case there && owner != o && !dropped && owner.Kind != model.Core:
					t.Fatalf("%s of %s is taken by %s", n, o, owner)
				case there && owner == o && dropped:
					t.Fatalf("%s no longer has %s, and it is live", o, n)
				}
			}
			if state[o] == model.Merged || state[o] == model.Duplicate || len(wants[o]) == 0 {
				continue
			}
			better := slices.ContainsFunc(wants[o], func(n string) bool {
				owner, there := is[n]
				return there && owner != o
			})
			if !better {
				t.Fatalf("%s is left out for nothing: %v", o, result.Reports)
			}
		}
	})
}
