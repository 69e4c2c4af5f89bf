package model_test

import (
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/proto"

	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// subjectKinds counts types without relations: all, those of them in force, and those of these that are unchanged.
type subjectKinds struct {
	names           []string
	live, unchanged int
}

func (k subjectKinds) LiveTypes() []*openfgav1.TypeDefinition { return bareTypes(k.names[:k.live]) }
func (k subjectKinds) UnchangedTypes() []*openfgav1.TypeDefinition {
	return bareTypes(k.names[:k.unchanged])
}

func (k subjectKinds) TypesWithin(count, _ int) []*openfgav1.TypeDefinition {
	return bareTypes(k.names[:max(0, min(count, len(k.names)))])
}

func bareTypes(names []string) []*openfgav1.TypeDefinition {
	var all []*openfgav1.TypeDefinition
	for _, name := range names {
		all = append(all, &openfgav1.TypeDefinition{Type: name, Metadata: &openfgav1.Metadata{Module: "iam"}})
	}
	return all
}

func reservedTypes(live int, names ...string) model.Module {
	return model.Module{Origin: model.ModuleOrigin{Kind: model.IAM}, Types: subjectKinds{names, live, live}}
}

func written(text string) model.Module {
	return model.Module{Origin: model.ModuleOrigin{Kind: model.AuthorizationModel, Name: "m"}, DSL: text}
}

const coreText = "module core\n\ntype user\n"

// typesOf returns the types of a model in its order.
func typesOf(m *openfgav1.AuthorizationModel) string {
	var names []string
	for _, t := range m.GetTypeDefinitions() {
		names = append(names, t.GetType())
	}
	return strings.Join(names, " ")
}

func TestMergeGeneratedTypesWithTexts(t *testing.T) {
	others := []model.Module{reservedTypes(0, "z.example/Z", "a.example/A"), written("module m\n\ntype doc\n")}
	var first []byte
	for range 2 {
		result, err := model.Merge(model.Module{DSL: coreText}, others, model.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := typesOf(result.Model); got != "a.example/A doc user z.example/Z" {
			t.Errorf("the types are %s", got)
		}
		encoded, _ := proto.MarshalOptions{Deterministic: true}.Marshal(result.Model)
		if first = append(first, encoded...); string(first) != strings.Repeat(string(encoded), len(first)/len(encoded)) {
			t.Error("the model depends on the order")
		}
		if i := slices.IndexFunc(result.Definitions, func(d model.Definition) bool { return d.Type == "a.example/A" }); i < 0 || result.Definitions[i].Origin.Kind != model.IAM {
			t.Errorf("the definitions are %+v", result.Definitions)
		}
		if i := slices.IndexFunc(result.Reports, func(r model.ModuleReport) bool { return r.Origin.Kind == model.IAM }); i < 0 || result.Reports[i].State != model.Merged ||
			result.Reports[i].Digest != iam.TypesDigest(bareTypes([]string{"z.example/Z", "a.example/A"})) {
			t.Errorf("the reports are %+v", result.Reports)
		}
		if text, err := model.RenderDSL(result.Model); err != nil || !strings.Contains(text, "type a.example/A") {
			t.Errorf("it is rendered as %s (%v)", text, err)
		}
		slices.Reverse(others)
	}
}

func TestMergeRejectsReservedTypes(t *testing.T) {
	const ordinary = "module m\n\ntype doc\n"
	tests := map[string]struct {
		text, live string
		state      model.MergeState
		types      string
	}{
		"one of its own":            {ordinary, "", model.Merged, "a.example/A doc user"},
		"one that there is":         {"module m\n\ntype a.example/A\n", "", model.Rejected, "a.example/A user"},
		"one that may come":         {"module m\n\ntype b.example/B\n", "", model.Rejected, "a.example/A user"},
		"another relation of one":   {"module m\n\nextend type a.example/A\n  relations\n    define door: [user]\n", "", model.Rejected, "a.example/A user"},
		"what was live before":      {"module m\n\ntype b.example/B\n", "module m\n\ntype b.example/B\n", model.Rejected, "a.example/A user"},
		"what was live beside":      {"module m\n\ntype b.example/B\n\ntype doc\n", "module m\n\ntype b.example/B\n\ntype doc\n", model.LastGoodLive, "a.example/A doc user"},
		"what was live and is gone": {"nothing", "module m\n\ntype b.example/B\n", model.Rejected, "a.example/A user"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := written(test.text)
			m.Live = test.live
			result, err := model.Merge(model.Module{DSL: coreText}, []model.Module{m, reservedTypes(1, "a.example/A")}, model.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := typesOf(result.Model); got != test.types {
				t.Errorf("the types are %s, want %s", got, test.types)
			}
			if got := result.Reports[1]; got.State != test.state || test.state == model.Rejected && test.live == "" && !strings.Contains(got.Message, "without '/'") {
				t.Errorf("the report is %+v, want %s", got, test.state)
			}
		})
	}
}

func TestMergeDoesNotReserveNamesWithoutGeneratedTypes(t *testing.T) {
	result, err := model.Merge(model.Module{DSL: coreText}, []model.Module{written("module m\n\ntype a.example/A\n")}, model.Limits{})
	if err != nil || typesOf(result.Model) != "a.example/A user" {
		t.Errorf("the types are %s (%v)", typesOf(result.Model), err)
	}
}

func TestPendingTypesReserveNames(t *testing.T) {
	none := model.Module{Origin: model.ModuleOrigin{Kind: model.IAM}, Types: model.PendingTypes{}}
	result, err := model.Merge(model.Module{DSL: coreText}, []model.Module{written("module m\n\ntype a.example/A\n"), none}, model.Limits{})
	if err != nil || typesOf(result.Model) != "user" || len(result.Reports) != 2 || result.Reports[1].State != model.Rejected {
		t.Errorf("the types are %s, the reports %+v (%v)", typesOf(result.Model), result.Reports, err)
	}
}

func TestLiveTypesHaveRoomBeforeTexts(t *testing.T) {
	text := written("module m\n\ntype doc\n")
	tests := map[string]struct {
		live, limit int
		settled     bool
		want        string
	}{
		"all":                          {1, 4, false, "a.example/A b.example/B doc user"},
		"a text before what is new":    {1, 3, false, "a.example/A doc user"},
		"what is live before texts":    {2, 3, false, "a.example/A b.example/B user"},
		"and before a text, even live": {2, 3, true, "a.example/A b.example/B user"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := text
			if test.settled {
				m.Live = m.DSL
			}
			result, err := model.Merge(model.Module{DSL: coreText, Live: coreText}, []model.Module{m, reservedTypes(test.live, "a.example/A", "b.example/B")}, model.Limits{Types: test.limit})
			if err != nil {
				t.Fatal(err)
			}
			if got := typesOf(result.Model); got != test.want {
				t.Errorf("the types are %s, want %s", got, test.want)
			}
		})
	}
}

func TestChangedTypesDisplaceNewTextsOnly(t *testing.T) {
	const old = "module m\n\ntype doc\n"
	changed := model.Module{Origin: model.ModuleOrigin{Kind: model.IAM}, Types: subjectKinds{[]string{"a.example/A", "b.example/B"}, 2, 1}}
	tests := map[string]struct{ text, live, want string }{
		"a new text":                   {old, "", "a.example/A b.example/B user"},
		"a live text":                  {old, old, "a.example/A doc user"},
		"a live text, that has grown":  {old + "\ntype page\n", old, "a.example/A doc user"},
		"a live text without room":     {"module m\n\ntype c.example/C\n", "module m\n\ntype c.example/C\n", "a.example/A b.example/B user"},
		"a live text that is no text":  {"nonsense", old, "a.example/A doc user"},
		"no text, with room for kinds": {"nonsense", "", "a.example/A b.example/B user"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := written(test.text)
			m.Live = test.live
			result, err := model.Merge(model.Module{DSL: coreText, Live: coreText}, []model.Module{m, changed}, model.Limits{Types: 3})
			if err != nil {
				t.Fatal(err)
			}
			if got := typesOf(result.Model); got != test.want {
				t.Errorf("the types are %s, want %s", got, test.want)
			}
		})
	}
}

func TestMergeReportsBrokenCoreBesideTypes(t *testing.T) {
	result, err := model.Merge(model.Module{DSL: "nonsense"}, []model.Module{reservedTypes(0, "a.example/A")}, model.Limits{})
	if err == nil || result.Model != nil {
		t.Errorf("there is %v (%v)", result.Model, err)
	}
}
