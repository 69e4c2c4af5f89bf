package policy_test

import (
	"bytes"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/format"
	"github.com/entail-dev/entail/services/policy/internal/policytest"
	"github.com/entail-dev/entail/services/policy/lint"
	"github.com/entail-dev/entail/services/policy/openfga"
	"github.com/entail-dev/entail/services/policy/report"
	"github.com/entail-dev/entail/services/policy/spicedb"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// FuzzPolicy passes any bytes to all steps. An accepted policy has a canonical form that is accepted as well and
// compiles to the same output.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte("a: &a [*a]\n---\nactions: [{<<: *b}]"))
	f.Add([]byte("resourceTypes: [{name: true, idPrefix: 1e3, relationships: [{relation: a, targetTypes: true}]}]"))
	for seed := range uint64(100) {
		f.Add([]byte(concat(policytest.GeneratePolicy(seed))))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		p, found := check.Files([]syntax.File{{Name: "fuzz.yaml", Content: content}}, syntax.ParseLimits{}, policy.Options{Strict: true})
		if (p == nil) != found.HasErrors() {
			t.Fatalf("policy %v with %v", p, found)
		}
		_ = report.RenderText(found)
		if _, err := report.RenderSARIF(found); err != nil {
			t.Fatal(err)
		}
		if formatted, found := format.Source(syntax.File{Content: content}); !found.HasErrors() {
			if again, found := format.Source(syntax.File{Content: formatted}); !bytes.Equal(formatted, again) {
				t.Fatalf("formatted\n%s\nand again\n%s%v", formatted, again, found)
			}
		}
		if p == nil {
			return
		}
		lint.Policy(p)
		canonical := policytest.CanonicalYAML(p)
		same, found := check.Files([]syntax.File{{Content: canonical}}, syntax.ParseLimits{}, policy.Options{})
		if same == nil {
			t.Fatalf("the canonical form has errors:\n%s%v", canonical, found)
		}
		for name, compile := range compilers() {
			want, _ := compile(p)
			if got, found := compile(same); !bytes.Equal(got, want) {
				t.Fatalf("%s of the canonical form differs:\n%s\n%s\n%v", name, got, want, found)
			}
		}
	})
}

func compilers() map[string]func(*policy.Policy) ([]byte, policy.Diagnostics) {
	return map[string]func(*policy.Policy) ([]byte, policy.Diagnostics){
		"schema": func(p *policy.Policy) ([]byte, policy.Diagnostics) {
			return spicedb.CompileSchema(p, spicedb.Options{})
		},
		"DSL":       func(p *policy.Policy) ([]byte, policy.Diagnostics) { return openfga.CompileDSL(p, openfga.Options{}) },
		"JSON":      func(p *policy.Policy) ([]byte, policy.Diagnostics) { return openfga.CompileJSON(p, openfga.Options{}) },
		"canonical": func(p *policy.Policy) ([]byte, policy.Diagnostics) { return policytest.CanonicalYAML(p), nil },
	}
}

func concat(texts []string) string {
	all := ""
	for _, text := range texts {
		all += text
	}
	return all
}
