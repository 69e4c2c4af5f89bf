package decision

import (
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/assets"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"
)

// assertion is an expected answer in OpenFGA's own tests.
type assertion struct {
	Tuple            *openfgav1.TupleKey
	ContextualTuples []*openfgav1.TupleKey `json:"contextualTuples"`
	Context          *structpb.Struct
	Expectation      bool
	ErrorCode        int `json:"errorCode"`
}

// TestTreesHaveAnswersOfOpenFGAsOwnTests evaluates the models with which OpenFGA tests its Check.
func TestTreesHaveAnswersOfOpenFGAsOwnTests(t *testing.T) {
	answered := map[Answer]int{}
	for _, file := range []string{"tests/consolidated_1_1_tests.yaml", "tests/abac_tests.yaml"} {
		text, err := assets.EmbedTests.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var corpus struct {
			Tests []struct {
				Name   string
				Stages []struct {
					Model           string
					Tuples          []*openfgav1.TupleKey
					CheckAssertions []assertion `json:"checkAssertions"`
				}
			}
		}
		if err := yaml.Unmarshal(text, &corpus); err != nil {
			t.Fatal(err)
		}
		for _, test := range corpus.Tests {
			if strings.HasPrefix(test.Name, "inline_expression") {
				continue // Such conditions are undecided: OpenFGA exports no function that evaluates them.
			}
			var stored []*openfgav1.TupleKey
			for _, stage := range test.Stages {
				types := typesOf(t, parseModel(t, stage.Model))
				stored = append(stored, stage.Tuples...) // The stages of a test share a store.
				for _, a := range stage.CheckAssertions {
					if a.ErrorCode != 0 {
						continue // The request is invalid, or a condition lacks a parameter.
					}
					q := Question{Object: a.Tuple.GetObject(), Relation: a.Tuple.GetRelation(), User: a.Tuple.GetUser(), Context: a.Context}
					tree, _ := explain(t, types, WithRequestTuples(tupleList{tuples: stored}, a.ContextualTuples), q)
					answered[tree.Answer]++
					want := map[bool]Answer{true: Yes, false: No}[a.Expectation]
					if test.Name == "true_butnot_cycle_return_false" {
						want = Undecided // OpenFGA denies here, but not in every such model.
					}
					if tree.Answer != want {
						t.Errorf("%s: %s: got %v, want %v", test.Name, a.Tuple, tree.Answer, want)
					}
				}
			}
		}
	}
	if answered[Yes] < 250 || answered[No] < 150 {
		t.Errorf("got %d yes and %d no, want at least 250 and 150", answered[Yes], answered[No])
	}
}
