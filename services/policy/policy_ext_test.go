package policy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func TestDiagnosticsAreSortedAndUnique(t *testing.T) {
	t.Parallel()
	source := func(file string, document int) *policy.DocumentSource {
		return &policy.DocumentSource{File: file, Document: document}
	}
	object := source("a", 0)
	_, first, second := object.AddFieldPosition("x"), object.AddFieldPosition("a"), object.AddFieldPosition("b")
	var c policy.DiagnosticCollector
	for _, place := range []policy.Place{
		source("b", 1).PlaceAt(policy.TextPosition(1, 1)), source("a", 2).PlaceAt(policy.TextPosition(9, 1)),
		source("a", 1).PlaceAt(policy.TextPosition(10, 2)), source("a", 1).PlaceAt(policy.TextPosition(10, 1)),
		source("a", 1).PlaceAt(policy.TextPosition(9, 9)), object.PlaceAt(second), object.PlaceAt(first),
		(*policy.DocumentSource)(nil).PlaceAt(policy.Position{}), source("a", 1).PlaceAt(policy.TextPosition(9, 9)),
	} {
		c.Add(place, policy.CodeName, "m", "h")
	}
	c.Add(source("a", 1).PlaceAt(policy.TextPosition(9, 9)), policy.CodeMissing, "m", "h")
	var got []string
	for _, d := range c.Diagnostics() {
		got = append(got, d.String())
	}
	want := "E-NAME m|a: a: E-NAME m|a: b: E-NAME m|a:9:9: E-MISSING m|a:9:9: E-NAME m|a:10:1: E-NAME m|a:10:2: E-NAME m|a:9:1: E-NAME m|b:1:1: E-NAME m"
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
}

func TestDiagnosticsAreBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		warnings, errors, shown int
		last                    policy.Code
	}{
		"warnings":                     {policy.MaxDiagnostics + 100, 0, 0, policy.CodeMoreWarnings},
		"errors":                       {0, policy.MaxDiagnostics + 100, policy.MaxDiagnostics, policy.CodeLimit},
		"an error after many warnings": {policy.MaxDiagnostics, 1, 1, policy.CodeMoreWarnings},
		"both":                         {policy.MaxDiagnostics, policy.MaxDiagnostics + 1, policy.MaxDiagnostics, policy.CodeLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c policy.DiagnosticCollector
			for i := range test.warnings {
				c.Add(policy.Place{File: "a", Line: i + 1}, policy.CodeUnusedType, "m", "h").AddRelated(policy.Place{}, "x")
			}
			for i := range test.errors {
				c.Add(policy.Place{File: "b", Line: i + 1}, policy.CodeName, "m", "h")
			}
			found := c.Diagnostics()
			shown := 0
			for _, d := range found[:policy.MaxDiagnostics] {
				if d.Severity == policy.Error {
					shown++
				}
			}
			if last := found[policy.MaxDiagnostics]; len(found) != policy.MaxDiagnostics+1 || last.Code != test.last || shown != test.shown ||
				found.HasErrors() != (test.errors > 0) || found.Total() != test.warnings+test.errors {
				t.Errorf("there are %d with %d errors, the last is %v", len(found), shown, last)
			}
		})
	}
}

func TestCodeSeverityFollowsFirstLetter(t *testing.T) {
	t.Parallel()
	if policy.CodeName.Severity() != policy.Error || policy.CodeUnderscore.Severity() != policy.Warning {
		t.Error("severities do not follow from codes")
	}
	warnings := policy.Diagnostics{{Severity: policy.Warning}}
	if warnings.HasErrors() || !append(warnings, policy.Diagnostic{Severity: policy.Error}).HasErrors() {
		t.Error("a warning is no error, and an error is one")
	}
}

func TestNamesFollowGrammar(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		// type, relation, action, prefix
		"": "----", "a": "tr--", "ab": "tra-", "abc": "trap", "a1": "t---", "a12": "t--p", "1ab": "---p", "a_": "tra-", "_a": "----", "a_b": "tra-",
		"Abc": "----", "aBc": "----", "a-b": "----", "a b": "----", "ä": "----", "abcä": "----", "a\n": "----",
	} {
		got := ""
		for _, is := range []struct {
			letter string
			valid  func(string) bool
		}{{"t", policy.IsTypeName}, {"r", policy.IsRelationName}, {"a", policy.IsActionName}, {"p", policy.IsIDPrefix}} {
			if is.valid(name) {
				got += is.letter
			} else {
				got += "-"
			}
		}
		if got != want {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
	}
}

func TestOptionsValidateRefusesInvalid(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options policy.Options
		valid   bool
	}{
		"none":                     {valid: true},
		"all":                      {policy.Options{RoleSuffix: "_rel", RoleType: "duty", RoleRelation: "holder", SubjectTypes: []string{"client", "user"}}, true},
		"suffix without _":         {policy.Options{RoleSuffix: "role"}, false},
		"suffix of _":              {policy.Options{RoleSuffix: "_"}, false},
		"suffix that ends in _":    {policy.Options{RoleSuffix: "_role_"}, false},
		"suffix in upper case":     {policy.Options{RoleSuffix: "_Role"}, false},
		"role in upper case":       {policy.Options{RoleType: "Role"}, false},
		"relation with a digit":    {policy.Options{RoleRelation: "r2"}, false},
		"subject that is the role": {policy.Options{SubjectTypes: []string{"role"}}, false},
		"subject with a dash":      {policy.Options{SubjectTypes: []string{"user", "a-b"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := test.options.Validate(); (err == nil) != test.valid {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestPackageCommentHoldsValidPolicy(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	_, language, _ := strings.Cut(string(content), "// # The language\n")
	for line := range strings.Lines(language) {
		if yaml, found := strings.CutPrefix(line, "//\t"); found {
			text.WriteString(yaml)
		} else if text.Len() > 0 {
			break
		}
	}
	p, found := check.Files([]syntax.File{{Name: "doc.go", Content: []byte(text.String())}}, syntax.ParseLimits{}, policy.Options{})
	if p == nil || len(found) > 0 || p.Sources[0].Owner != "storage-api" {
		t.Errorf("%v in\n%s", found, text.String())
	}
}
