package model_test

import (
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/proto"

	"github.com/entail-dev/entail/services/store-sync/model"
)

// various uses every feature of the DSL.
const various = `module various

type team
  relations
    define lead: [user]
    define member: [user, user:*, team#member] or lead

type page
  relations
    define parent: [page]
    define next: [page]
    define owner: [user, team#member with office_hours]
    define banned: [user:*, user]
    define editor: owner or (owner from parent and member_of_owner)
    define member_of_owner: [team#member]
    define viewer: ([user] or editor or viewer from parent) but not banned

extend type account
  relations
    define page_admin: [team#member] and owner

condition office_hours(hour: int, day: int, zones: list<string>) {
  hour > 8 && "UTC" in zones
}
`

// edited merges the various module after replacing one text by another, which must occur.
func edited(t *testing.T, before, after string) *openfgav1.AuthorizationModel {
	t.Helper()
	if !strings.Contains(various, before) {
		t.Fatalf("there is no %q", before)
	}
	result := mustMerge(t, named("various", strings.ReplaceAll(various, before, after)))
	if r := result.Reports[1]; r.State != model.Merged {
		t.Fatal(r.Message)
	}
	return result.Model
}

func TestEqualIgnoresSpelling(t *testing.T) {
	for name, tt := range map[string]struct{ before, after string }{
		"nothing changed":             {"module various", "module various"},
		"comments":                    {"type team\n", "# a team\ntype team # of people\n"},
		"order of relations":          {"    define parent: [page]\n    define next: [page]\n", "    define next: [page]\n    define parent: [page]\n"},
		"order of assignable types":   {"[user, user:*, team#member]", "[team#member, user:*, user]"},
		"a type named twice":          {"[user, user:*, team#member]", "[user, user, user:*, team#member]"},
		"order of operands":           {"([user] or editor or viewer from parent)", "([user] or viewer from parent or editor)"},
		"order of operands inside":    {"(owner from parent and member_of_owner)", "(member_of_owner and owner from parent)"},
		"brackets around the same":    {"[user] or editor or viewer from parent", "[user] or (editor or viewer from parent)"},
		"an operand named twice":      {"[user] or editor or viewer", "[user] or editor or editor or viewer"},
		"order of parameters":         {"hour: int, day: int", "day: int, hour: int"},
		"space around the expression": {"  hour > 8", "     hour > 8"},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := edited(t, "module various", "module various"), edited(t, tt.before, tt.after); !model.Equal(a, b) || !model.Equal(b, a) {
				t.Errorf("the models differ:\n%v\n%v", a, b)
			}
		})
	}
}

func TestEqualDetectsDifference(t *testing.T) {
	for name, tt := range map[string]struct{ before, after string }{
		"a type more":                     {"type team\n", "type group\n\ntype team\n"},
		"a type renamed":                  {"team", "crew"},
		"a relation more":                 {"    define lead: [user]\n", "    define lead: [user]\n    define other: [user]\n"},
		"a relation renamed":              {"banned", "blocked"},
		"a relation to another type":      {"extend type account\n  relations\n", "extend type role\n  relations\n    define owner: [user]\n"},
		"an assignable type more":         {"define lead: [user]", "define lead: [user, user:*]"},
		"everybody instead of somebody":   {"define lead: [user]", "define lead: [user:*]"},
		"a userset instead of an object":  {"define lead: [user]", "define lead: [team#member]"},
		"another relation of the userset": {"define member_of_owner: [team#member]", "define member_of_owner: [team#lead]"},
		"an operand more":                 {"or lead\n", "or lead or member from parent\n    define parent: [team]\n"},
		"an operand less":                 {"([user] or editor or viewer from parent)", "([user] or viewer from parent)"},
		"or instead of and":               {"[team#member] and owner", "[team#member] or owner"},
		"and not instead of and":          {"[team#member] and owner", "[team#member] but not owner"},
		"another operand":                 {"or (owner from parent", "or (editor from parent"},
		"another parent":                  {"or viewer from parent)", "or viewer from next)"},
		"a condition more":                {"[user, team#member with office_hours]", "[user with office_hours, team#member with office_hours]"},
		"a condition less":                {" with office_hours", ""},
		"a condition renamed":             {"office_hours", "hours"},
		"another expression":              {"hour > 8", "hour > 9"},
		"another type of a parameter":     {"day: int", "day: uint"},
		"a map instead of a list":         {"list<string>", "map<string>"},
		"a parameter more":                {"day: int", "day: int, month: int"},
		"another module":                  {"module various", "module other"},
	} {
		t.Run(name, func(t *testing.T) {
			a := edited(t, "module various", "module various")
			if b := edited(t, tt.before, tt.after); model.Equal(a, b) || model.Equal(b, a) {
				t.Errorf("the models are equal:\n%v", a)
			}
		})
	}
}

func TestEqualIgnoresServerMetadata(t *testing.T) {
	original := edited(t, "module various", "module various")
	for name, change := range map[string]func(*openfgav1.AuthorizationModel){
		"id":             func(m *openfgav1.AuthorizationModel) { m.Id = "01HVMMBCMGZNT3SED4Z17ECXCA" },
		"order of types": func(m *openfgav1.AuthorizationModel) { slices.Reverse(m.GetTypeDefinitions()) },
		"files": func(m *openfgav1.AuthorizationModel) {
			for _, typ := range m.GetTypeDefinitions() {
				typ.Metadata.SourceInfo = &openfgav1.SourceInfo{File: "a.fga"}
				for _, r := range typ.GetMetadata().GetRelations() {
					r.SourceInfo = &openfgav1.SourceInfo{File: "b.fga"}
				}
			}
			m.Conditions["office_hours"].Metadata.SourceInfo = &openfgav1.SourceInfo{File: "c.fga"}
		},
		"a module repeated for every relation": func(m *openfgav1.AuthorizationModel) {
			for _, typ := range m.GetTypeDefinitions() {
				for _, r := range typ.GetMetadata().GetRelations() {
					if r.GetModule() == "" {
						r.Module = typ.GetMetadata().GetModule()
					}
				}
			}
		},
		"empty metadata left out": func(m *openfgav1.AuthorizationModel) {
			for _, typ := range m.GetTypeDefinitions() {
				for relation, r := range typ.GetMetadata().GetRelations() {
					if proto.Size(r) == 0 {
						delete(typ.GetMetadata().GetRelations(), relation)
					}
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := proto.CloneOf(original)
			change(changed)
			if !model.Equal(original, changed) {
				t.Errorf("the models differ:\n%v\n%v", original, changed)
			}
		})
	}
	older := proto.CloneOf(original)
	older.SchemaVersion = "1.1"
	if model.Equal(original, older) {
		t.Error("a model of another schema version is equal")
	}
	if model.Equal(original, nil) || model.Equal(nil, original) || !model.Equal(nil, nil) {
		t.Error("no model is equal to no model only")
	}
}

func TestRenderDSLRoundTrips(t *testing.T) {
	original := edited(t, "module various", "module core")
	text, err := model.RenderDSL(original)
	if err != nil {
		t.Fatal(err)
	}
	before := proto.CloneOf(original)
	body, ok := strings.CutPrefix(text, "model\n  schema 1.2\n")
	if !ok {
		t.Fatalf("got %s", text)
	}
	again, err := model.Merge(coreModule("module core\n"+body), nil, model.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !model.Equal(original, again.Model) {
		t.Errorf("the DSL means something else:\n%s", text)
	}
	if !proto.Equal(before, original) {
		t.Error("rendering changed the model")
	}
	slices.Reverse(original.GetTypeDefinitions())
	if second, _ := model.RenderDSL(original); second != text {
		t.Errorf("another order of types renders as\n%s", second)
	}
}

func TestRenderDSLRefusesInexpressibleModel(t *testing.T) {
	this := &openfgav1.Userset{Userset: &openfgav1.Userset_This{This: &openfgav1.DirectUserset{}}}
	owner := &openfgav1.Userset{Userset: &openfgav1.Userset_ComputedUserset{ComputedUserset: &openfgav1.ObjectRelation{Relation: "owner"}}}
	for name, m := range map[string]*openfgav1.AuthorizationModel{
		"direct assignment inside": {TypeDefinitions: []*openfgav1.TypeDefinition{{Type: "x", Relations: map[string]*openfgav1.Userset{
			"p": {Userset: &openfgav1.Userset_Difference{Difference: &openfgav1.Difference{Base: owner, Subtract: this}}},
		}}}},
		"a list of nothing": {Conditions: map[string]*openfgav1.Condition{"c": {Name: "c", Parameters: map[string]*openfgav1.ConditionParamTypeRef{
			"l": {TypeName: openfgav1.ConditionParamTypeRef_TYPE_NAME_LIST},
		}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if text, err := model.RenderDSL(m); err == nil {
				t.Errorf("got %s", text)
			}
		})
	}
}
