package syntax_test

import (
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func TestSetObjectPositions(t *testing.T) {
	t.Parallel()
	d := &syntax.Document{
		Source: &policy.DocumentSource{File: "policydocument/team/lb"},
		ResourceTypes: []syntax.ResourceType{{
			Name: syntax.Name{Text: "foo"}, IDPrefix: syntax.Name{Text: "permfoo"},
			Relationships: []syntax.Relationship{{Relation: syntax.Name{Text: "own"}, Targets: []syntax.Name{{Text: "foo"}, {Text: "bar"}}}},
		}},
		Unions:  []syntax.Union{{Name: syntax.Name{Text: "u"}, Members: []syntax.Name{{Text: "foo"}}}},
		Actions: []syntax.Action{{Name: syntax.Name{Text: "get"}}},
		Bindings: []syntax.Binding{{
			Action: syntax.Name{Text: "get"}, Type: syntax.Name{Text: "foo"},
			Conditions: []syntax.Condition{
				{RoleBinding: true},
				{RelationshipAction: &syntax.RelationshipAction{Relation: syntax.Name{Text: "own"}, Action: syntax.Name{Text: "get"}}},
			},
		}},
	}
	syntax.SetObjectPositions(d, "spec")
	binding := d.Bindings[0]
	for want, at := range map[string]policy.Position{
		"spec":                                                               {},
		"spec.resourceTypes[0]":                                              d.ResourceTypes[0].At,
		"spec.resourceTypes[0].name":                                         d.ResourceTypes[0].Name.At,
		"spec.resourceTypes[0].idPrefix":                                     d.ResourceTypes[0].IDPrefix.At,
		"spec.resourceTypes[0].relationships[0]":                             d.ResourceTypes[0].Relationships[0].At,
		"spec.resourceTypes[0].relationships[0].relation":                    d.ResourceTypes[0].Relationships[0].Relation.At,
		"spec.resourceTypes[0].relationships[0].targetTypes[1]":              d.ResourceTypes[0].Relationships[0].Targets[1].At,
		"spec.unions[0].name":                                                d.Unions[0].Name.At,
		"spec.unions[0].resourceTypes[0]":                                    d.Unions[0].Members[0].At,
		"spec.actions[0].name":                                               d.Actions[0].Name.At,
		"spec.actionBindings[0]":                                             binding.At,
		"spec.actionBindings[0].typeName":                                    binding.Type.At,
		"spec.actionBindings[0].conditions[0]":                               binding.Conditions[0].At,
		"spec.actionBindings[0].conditions[1].relationshipAction":            binding.Conditions[1].RelationshipAction.At,
		"spec.actionBindings[0].conditions[1].relationshipAction.relation":   binding.Conditions[1].RelationshipAction.Relation.At,
		"spec.actionBindings[0].conditions[1].relationshipAction.actionName": binding.Conditions[1].RelationshipAction.Action.At,
	} {
		place := d.Source.PlaceAt(at)
		if place.Path != want || place.Line != 0 || place.Column != 0 {
			t.Errorf("%+v, want %s", place, want)
		}
		if text := place.String(); text != "policydocument/team/lb: "+want {
			t.Errorf("it is called %s", text)
		}
	}
}

func TestObjectOwnerIsValidModuleName(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]string{
		"team/lb-api":                            "team_lb-api",
		"team/lb.api":                            "team_lb_api",
		"kind/team/lb-api":                       "policy-",
		"2nd-team/lb":                            "policy-",
		"team/" + strings.Repeat("a", 45):        "team_" + strings.Repeat("a", 45),
		"team/" + strings.Repeat("a", 46):        "policy-",
		"team/" + strings.Repeat("a", 45) + "bc": "policy-",
	} {
		got := syntax.ObjectOwner(object)
		if !strings.HasPrefix(got, want) || len(got) > 50 || want != "policy-" && got != want {
			t.Errorf("%s is %s, want %s", object, got, want)
		}
	}
	if syntax.ObjectOwner("a/b/c") == syntax.ObjectOwner("a/b/d") {
		t.Error("two objects have one owner")
	}
}
