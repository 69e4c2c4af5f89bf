package plan_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// collidingAPIs draws APIs whose names often become equal when they are cut, or give the same type in two ways.
func collidingAPIs(t *rapid.T) []plan.APIResource {
	name := rapid.SampledFrom([]string{"widget", "gadget", "veryspecialthingindeed", "relation"})
	group := rapid.SampledFrom([]string{"", "core", "a.example.com", "a-b.example.com", "3d.example.com", "aaa.of.some.length.example.com", "bbb.of.some.length.example.com"})
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) plan.APIResource {
		singular := name.Draw(t, "name")
		return plan.APIResource{Group: group.Draw(t, "group"), Plural: singular + "s", Singular: singular, Namespaced: rapid.Bool().Draw(t, "namespaced")}
	}), 2, 12, plan.APIResource.String).Draw(t, "APIs")
}

func TestCollidingAPIsAreRejectedWithReason(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var modules []model.Module
		for _, r := range collidingAPIs(t) {
			m := model.Module{Origin: model.ModuleOrigin{Kind: model.Discovered, Scope: r.Group, Name: r.Plural}, API: r.String()}
			dsl, err := plan.ModuleTemplate{Discovered: true}.RenderModule(r)
			if m.DSL = dsl; err != nil {
				m.Fault = err.Error()
			}
			modules = append(modules, m)
		}
		result, err := model.Merge(model.Module{DSL: core}, modules, model.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		live := map[string]string{} // Each living type with its module.
		for _, report := range result.Reports[1:] {
			m := find(modules, report.Origin)
			switch typ := typeOf(m.DSL); {
			case report.State == model.Merged && live[typ] == "":
				live[typ] = report.Origin.String()
			case report.State != model.Rejected:
				t.Errorf("%s is %s beside %s", report.Origin, report.State, live[typ])
			case m.Fault == "" && !strings.Contains(report.Message, "already defined by "):
				t.Errorf("%s does not collide and is rejected: %s", report.Origin, report.Message)
			case m.Fault != "" && !strings.Contains(report.Message, m.Fault):
				t.Errorf("%s is rejected with %q, which is not %q", report.Origin, report.Message, m.Fault)
			}
		}
	})
}

func find(modules []model.Module, o model.ModuleOrigin) model.Module {
	for _, m := range modules {
		if m.Origin == o {
			return m
		}
	}
	return model.Module{}
}

// typeOf returns the type that a generated module defines.
func typeOf(dsl string) string {
	_, after, _ := strings.Cut(dsl, "\ntype ")
	typ, _, _ := strings.Cut(after, "\n")
	return typ
}
