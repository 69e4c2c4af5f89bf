package model_test

import (
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/store-sync/model"
)

func generated(name, api, dsl string) model.Module {
	m := named(name, dsl)
	m.API = api
	return m
}

const thing = "module things\n\ntype thing\n  relations\n    define reader: [user]\n"

func TestMergeTreatsEqualTextOfTwoAPIsAsConflict(t *testing.T) {
	for name, test := range map[string]struct {
		first, second string
		want          model.MergeState
	}{
		"two APIs":                   {"things.a.com", "things.b.com", model.Rejected},
		"one API":                    {"things.a.com", "things.a.com", model.Duplicate},
		"a person's and an API's":    {"", "things.a.com", model.Duplicate},
		"two persons'":               {"", "", model.Duplicate},
		"an API's before a person's": {"things.a.com", "", model.Duplicate},
	} {
		t.Run(name, func(t *testing.T) {
			r := mustMerge(t, generated("m1", test.first, thing), generated("m2", test.second, thing)).Reports[2]
			if r.State != test.want {
				t.Errorf("the second is %s: %s", r.State, r.Message)
			}
			if test.want == model.Rejected && (!strings.Contains(r.Message, "authorizationmodel/m1") || !strings.Contains(r.Message, "things.b.com")) {
				t.Errorf("the message is %q", r.Message)
			}
		})
	}
}

func TestMergeRejectsUnrenderableModuleAlone(t *testing.T) {
	bad := model.Module{Origin: model.ModuleOrigin{Kind: model.Discovered, Name: "things"}, Fault: "no name\nfor it"}
	result := mustMerge(t, bad, named("m1", thing))
	if r := result.Reports[2]; r.State != model.Rejected || r.Message != "no name for it" {
		t.Errorf("report is %+v", r)
	}
	if r := result.Reports[1]; r.State != model.Merged {
		t.Errorf("the other is %+v", r)
	}
}
