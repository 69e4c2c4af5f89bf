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

func TestMergeSharesNoState(t *testing.T) {
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
