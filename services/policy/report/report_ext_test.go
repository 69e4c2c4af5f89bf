package report_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/report"
)

func found() policy.Diagnostics {
	file := &policy.DocumentSource{File: "a b/p.yaml", Document: 2}
	object := &policy.DocumentSource{File: "policydocument/team/lb"}
	object.AddFieldPosition("spec")
	var f policy.DiagnosticCollector
	f.Add(file.PlaceAt(policy.TextPosition(3, 9)), policy.CodeDupAction, `action "get" is declared twice`, "keep one declaration").
		AddRelated(file.PlaceAt(policy.TextPosition(1, 2)), "the first")
	f.Add(object.PlaceAt(object.AddFieldPosition("spec.actions[0].name")), policy.CodeUnusedAction, `no binding has the action "get"`, "remove it")
	f.Add(policy.Place{}, policy.CodeEmpty, "there is no policy", "name files")
	return f.Diagnostics()
}

func TestRenderText(t *testing.T) {
	t.Parallel()
	const want = `E-EMPTY there is no policy
    hint: name files
a b/p.yaml:3:9: E-DUP-ACTION action "get" is declared twice
    a b/p.yaml:1:2: the first
    hint: keep one declaration
policydocument/team/lb: spec.actions[0].name: W-UNUSED-ACTION no binding has the action "get"
    hint: remove it
`
	if got := report.RenderText(found()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRenderJSONHasEveryField(t *testing.T) {
	t.Parallel()
	out, err := report.RenderJSON(found())
	if err != nil {
		t.Fatal(err)
	}
	var back []map[string]any
	if err := json.Unmarshal(out, &back); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"file": "a b/p.yaml", "document": 2.0, "line": 3.0, "column": 9.0, "code": "E-DUP-ACTION", "severity": "error",
		"message": `action "get" is declared twice`, "hint": "keep one declaration",
	} {
		if back[1][key] != want {
			t.Errorf("%s is %v, want %v", key, back[1][key], want)
		}
	}
	if back[2]["path"] != "spec.actions[0].name" || back[2]["severity"] != "warning" || len(back) != 3 {
		t.Errorf("got %s", out)
	}
	if out, err := report.RenderJSON(nil); err != nil || string(out) != "[]\n" {
		t.Errorf("of nothing it is %s, %v", out, err)
	}
}

func TestRenderSARIFNamesRulesAndPlaces(t *testing.T) {
	t.Parallel()
	out, err := report.RenderSARIF(found())
	if err != nil {
		t.Fatal(err)
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Rules []struct {
						ID, HelpURI      string
						ShortDescription struct{ Text string }
					}
				}
			}
			Results []struct {
				RuleID, Level    string
				Message          struct{ Text string }
				Locations        []sarifLocation
				RelatedLocations []sarifLocation
			}
		}
	}
	if err := json.Unmarshal(out, &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if log.Version != "2.1.0" || len(run.Tool.Driver.Rules) != 3 || run.Tool.Driver.Rules[0].ID != "E-DUP-ACTION" || len(run.Results) != 3 {
		t.Fatalf("got %s", out)
	}
	for _, rule := range run.Tool.Driver.Rules {
		if rule.ShortDescription.Text == "" || !strings.HasSuffix(rule.HelpURI, "docs/reference/policy-codes.md#"+strings.ToLower(rule.ID)) {
			t.Errorf("rule %+v", rule)
		}
	}
	second, third := run.Results[1], run.Results[2]
	place := second.Locations[0].PhysicalLocation
	if second.RuleID != "E-DUP-ACTION" || second.Level != "error" || !strings.Contains(second.Message.Text, "Hint: keep one") ||
		place.ArtifactLocation.URI != "a%20b/p.yaml" || place.Region.StartLine != 3 || place.Region.StartColumn != 9 ||
		second.RelatedLocations[0].Message.Text != "the first" {
		t.Errorf("got %s", out)
	}
	if len(run.Results[0].Locations) != 0 || third.Level != "warning" || third.Locations[0].LogicalLocations[0].FullyQualifiedName != "spec.actions[0].name" {
		t.Errorf("got %s", out)
	}
}

type sarifLocation struct {
	PhysicalLocation struct {
		ArtifactLocation struct{ URI string }
		Region           struct{ StartLine, StartColumn int }
	}
	LogicalLocations []struct{ FullyQualifiedName string }
	Message          struct{ Text string }
}
