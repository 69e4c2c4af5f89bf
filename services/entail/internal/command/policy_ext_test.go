package command_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/gen/entail/policy/v1/policyv1connect"
)

// fakePolicyService is a PolicyService with one finding that keeps the last request.
type fakePolicyService struct {
	policyv1connect.UnimplementedPolicyServiceHandler
	asked    *policyv1.Policy
	compared *policyv1.DiffPoliciesRequest
	differ   *policyv1.DiffPoliciesResponse
}

func (p *fakePolicyService) DiffPolicies(_ context.Context, r *policyv1.DiffPoliciesRequest) (*policyv1.DiffPoliciesResponse, error) {
	p.compared = r
	return p.differ, nil
}

func (p *fakePolicyService) CheckPolicy(_ context.Context, r *policyv1.CheckPolicyRequest) (*policyv1.CheckPolicyResponse, error) {
	p.asked = r.GetPolicy()
	return &policyv1.CheckPolicyResponse{Findings: &policyv1.Findings{Diagnostics: []*policyv1.Diagnostic{{
		Place: &policyv1.Place{File: "a.yaml", Line: 3, Column: 4}, Code: "E-DUP-TYPE", Message: "type twice", Hint: "keep one",
		Related: []*policyv1.Diagnostic_Related{{Place: &policyv1.Place{File: "policydocument/team/lb", Path: "spec"}, Message: "the first"}},
	}}}}, nil
}

func TestPolicyCheckUsesDocumentsOfStore(t *testing.T) {
	var p fakePolicyService
	_, handler := policyv1connect.NewPolicyServiceHandler(&p)
	server := httptest.NewServer(handler)
	defer server.Close()
	file := written(t, "actions: []\n")
	ask := func(args ...string) commandResult {
		return run(t, map[string]string{"ENTAIL_STORE_SERVER": server.URL}, append([]string{"policy", "check", file, "--store", "demo"}, args...)...)
	}
	got := ask("--replaces", "team/lb")
	for _, want := range []string{"a.yaml:3:4: E-DUP-TYPE type twice\n", "policydocument/team/lb: spec: the first", "hint: keep one"} {
		if got.code != 1 || !strings.Contains(got.out, want) {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
	if a := p.asked; a.GetBeside() != "demo" || a.GetReplaces()[0] != "team/lb" || a.GetOptions() != nil || string(a.GetFiles().GetFiles()[0].GetContent()) != "actions: []\n" {
		t.Errorf("asked %v", a)
	}
	if ask("--role-type", "duty"); p.asked.GetOptions().GetRoleType() != "duty" {
		t.Errorf("asked %v", p.asked)
	}
}

func TestPolicyDiffComparesWithStore(t *testing.T) {
	p := fakePolicyService{differ: &policyv1.DiffPoliciesResponse{
		Worst: policyv1.Class_CLASS_WIDENING, Total: 3, Truncated: true,
		Changes: []*policyv1.Change{{Class: policyv1.Class_CLASS_WIDENING, What: "condition", New: &policyv1.Place{File: "a.yaml", Line: 3, Column: 4}, Message: "more may get it"}},
	}}
	_, handler := policyv1connect.NewPolicyServiceHandler(&p)
	server := httptest.NewServer(handler)
	defer server.Close()
	file := written(t, "actions: []\n")
	ask := func(args ...string) commandResult {
		return run(t, map[string]string{"ENTAIL_STORE_SERVER": server.URL}, append([]string{"policy", "diff", file}, args...)...)
	}
	got := ask("--store", "demo", "--replaces", "team/lb")
	if got.code != 11 || got.out != "widening:\n  a.yaml:3:4: more may get it\n  and 2 more\n" {
		t.Errorf("got %+v", got)
	}
	if was, is := p.compared.GetOld(), p.compared.GetNew(); was.GetStore() != "demo" || is.GetBeside() != "demo" || is.GetReplaces()[0] != "team/lb" ||
		string(is.GetFiles().GetFiles()[0].GetContent()) != "actions: []\n" {
		t.Errorf("asked %v", p.compared)
	}
	if got := ask("--store", "demo", "-o", "json"); got.code != 11 || !strings.Contains(got.out, `"worst": "widening"`) {
		t.Errorf("as JSON: %+v", got)
	}
	twice := &policyv1.Findings{Total: 1, Diagnostics: []*policyv1.Diagnostic{{Code: "E-DUP-TYPE", Message: "twice", Hint: "keep one"}}}
	p.differ = &policyv1.DiffPoliciesResponse{OldFindings: twice, NewFindings: twice}
	if got := ask("--store", "demo"); got.code != 1 || strings.Count(got.err, "E-DUP-TYPE") != 1 || got.out != "" {
		t.Errorf("of a policy with errors: %+v", got)
	}
	if got := ask(); got.code != 2 {
		t.Errorf("of one file without a store: %+v", got)
	}
}
