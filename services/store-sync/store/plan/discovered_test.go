package plan_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

func TestAStoreDiscoversUnlessItSaysOtherwiseOrIsThePlatforms(t *testing.T) {
	for name, test := range map[string]struct {
		store string
		mode  corev1alpha1.DiscoveryMode
		want  bool
	}{
		"a store":               {"demo", "", true},
		"a store that asks":     {"demo", corev1alpha1.DiscoveryAuto, true},
		"a store that does not": {"demo", corev1alpha1.DiscoveryNone, false},
		"the platform's":        {"orgs", corev1alpha1.DiscoveryAuto, false},
		"one named alike":       {"orgs2", "", true},
	} {
		s := &corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{Name: test.store}, Spec: corev1alpha1.StoreSpec{Discovery: test.mode}}
		if plan.Discovers(s) != test.want {
			t.Errorf("%s discovers: %t", name, !test.want)
		}
	}
}

func TestTheModulesOfAStoreHaveOneOrder(t *testing.T) {
	discovered := func(group, name string) model.Module {
		return model.Module{Origin: model.Origin{Kind: model.Discovered, Scope: group, Name: name}, API: strings.Trim(name+"."+group, ".")}
	}
	made := module("things-demo", "module things\n")
	made.Value.Annotations = map[string]string{
		corev1alpha1.ResourceAnnotation: "things.b.com", corev1alpha1.RejectedAnnotation: "no",
	}
	foreign := module("a", "module foreign\n")
	foreign.Change = event.Change{Key: event.Key{Cluster: "east", Name: "a"}}
	in := plan.Input{
		Key: event.Key{Cluster: "local", Name: "demo"}, AccountType: "document",
		Store:      &corev1alpha1.Store{Spec: corev1alpha1.StoreSpec{CoreModule: core}},
		Modules:    []plan.Module{made, foreign, module("b", "module b\n")},
		Discovered: []model.Module{discovered("b.com", "things"), discovered("b.com", "aunts"), discovered("", "pods")},
	}
	for accountType, want := range map[string]string{
		"document": "authorizationmodel/b authorizationmodel/things-demo authorizationmodel/east/a discovered/pods discovered/b.com/aunts",
		"account":  "authorizationmodel/b authorizationmodel/things-demo authorizationmodel/east/a",
	} {
		in.AccountType = accountType
		_, others := plan.Sources(in)
		var got []string
		for _, m := range others {
			got = append(got, m.Origin.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("account type %s: %v, want %s", accountType, got, want)
		}
		if others[1].API != "things.b.com" || others[1].Fault != "no" {
			t.Errorf("the generated module is %+v", others[1])
		}
	}
}
