package plan_test

import (
	"strings"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

func TestModuleStatusesAreOrdered(t *testing.T) {
	discovered := func(group, name string) model.Module {
		return model.Module{Origin: model.ModuleOrigin{Kind: model.Discovered, Scope: group, Name: name}, API: strings.Trim(name+"."+group, ".")}
	}
	made := module("things-demo", "module things\n")
	made.Value.Annotations = map[string]string{
		corev1alpha1.ResourceAnnotation: "things.b.com", corev1alpha1.RejectedAnnotation: "no",
	}
	foreign := module("a", "module foreign\n")
	foreign.Change = event.Change{Key: event.Key{Cluster: "east", Name: "a"}}
	in := plan.Input{
		Key:      event.Key{Cluster: "local", Name: "demo"},
		Store:    &corev1alpha1.Store{Spec: corev1alpha1.StoreSpec{CoreModule: core}},
		Modules:  []plan.ModelObject{made, foreign, module("b", "module b\n")},
		Provided: []model.Module{discovered("b.com", "things"), discovered("b.com", "aunts"), discovered("", "pods")},
	}
	names := func() string {
		_, others := plan.ModuleSources(in)
		var got []string
		for _, m := range others {
			got = append(got, m.Origin.String())
		}
		if others[1].API != "things.b.com" || others[1].Fault != "no" {
			t.Errorf("the generated module is %+v", others[1])
		}
		return strings.Join(got, " ")
	}
	const all = "authorizationmodel/b authorizationmodel/things-demo discovered/pods discovered/b.com/aunts"
	if got, want := names(), all+" discovered/b.com/things"; got != want {
		t.Errorf("with an annotation alone: got %s, want %s", got, want)
	}
	in.Provided[0].Yields = true
	if got := names(); got != all {
		t.Errorf("with an AuthorizationModel in its place: got %s, want %s", got, all)
	}
}
