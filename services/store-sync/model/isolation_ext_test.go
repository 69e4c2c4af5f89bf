package model_test

import (
	"fmt"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/entail-dev/entail/services/store-sync/model"
)

func TestMergeIsolatesBrokenModules(t *testing.T) {
	var good, all []model.Module
	for i := range 60 {
		good = append(good, resource(i))
	}
	all = append(all, good...)
	broken := map[int]string{
		7:  "module things7\n\ntype group7_example_org_thing7\n  relations\n    define get member\n",
		23: "module things23\n\ntype group22_example_org_thing22\n",
		41: "module things41\n\ntype group41_example_org_thing41\n  relations\n    define get: [group41_example_org_thing41#get]\n",
	}
	for i, dsl := range broken {
		all[i].DSL = dsl
	}
	rejected := func() (found []string) {
		for _, r := range mustMerge(t, all...).Reports {
			if r.State != model.Merged {
				found = append(found, r.Origin.Name)
			}
		}
		return found
	}
	if got := fmt.Sprint(rejected()); got != "[things23 things41 things7]" {
		t.Errorf("rejected are %s", got)
	}
	all[23] = good[23]
	if got := fmt.Sprint(rejected()); got != "[things41 things7]" {
		t.Errorf("after mending one, rejected are %s", got)
	}
	all[7], all[41] = good[7], good[41]
	if got := rejected(); len(got) != 0 {
		t.Errorf("after mending all, rejected are %s", got)
	}
}

// TestMergeRejectsManyInvalidModulesAsOne merges more invalid modules than are dropped one by one. Each must be rejected
// with the reason that it has alone, and take nothing from others.
func TestMergeRejectsManyInvalidModulesAsOne(t *testing.T) {
	circle := func(i int) string {
		return fmt.Sprintf("module m%02d\n\ntype t%02d\n  relations\n    define p: [t%02d#p]\n", i, i, i)
	}
	var modules []model.Module
	want := map[string]model.MergeState{}
	add := func(name, dsl string, state model.MergeState) {
		modules, want[name] = append(modules, named(name, dsl)), state
	}
	for i := range 12 {
		add(fmt.Sprintf("m%02d", i), circle(i), model.Rejected)
	}
	add("m20", circle(20), model.Rejected)
	add("m21", "module m21\n\ntype t20\n  relations\n    define p: [user]\n", model.Merged) // It gets the type of m20.
	add("m30", "module m30\n\ntype t30\n  relations\n    define to: [t31, t32]\n    define p: p from to\n\ntype t31\n  relations\n    define p: [t31#p]\n\ntype t32\n",
		model.Rejected)
	// The first module is valid only with the relation of the third, which waits until the second is out.
	add("m40", "module m40\n\ntype t40\n  relations\n    define to: [t42]\n    define p: p from to\n\ntype t42\n", model.Merged)
	add("m41", circle(41)+"\nextend type t42\n  relations\n    define p: [t42#p]\n", model.Rejected)
	add("m42", "module m42\n\nextend type t42\n  relations\n    define p: [user]\n", model.Merged)
	result := mustMerge(t, modules...)
	for _, m := range modules {
		got, _ := result.ReportOf(m.Origin)
		if got.State != want[m.Origin.Name] {
			t.Errorf("%s: got %s %q, want %s", m.Origin.Name, got.State, got.Message, want[m.Origin.Name])
		}
		if alone, _ := mustMerge(t, m).ReportOf(m.Origin); got.State == model.Rejected && got.Message != alone.Message && m.Origin.Name != "m41" {
			t.Errorf("%s: got %q, want %q", m.Origin.Name, got.Message, alone.Message)
		}
	}
}

func TestMergeDoesNotShareState(t *testing.T) {
	modules := []model.Module{named("various", various), named("wrong", extension("owner", "[user]")), resource(1)}
	want := mustMerge(t, modules...)
	bytes := bytesOf(t, want.Model)
	for _, typ := range want.Model.GetTypeDefinitions() {
		proto.Reset(typ)
	}
	proto.Reset(want.Model)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := model.Merge(coreModule(core), modules, model.Limits{})
			if err != nil || bytesOf(t, got.Model) != bytes {
				t.Errorf("a merge beside others differs: %v", err)
			}
		})
	}
	all.Wait()
}
