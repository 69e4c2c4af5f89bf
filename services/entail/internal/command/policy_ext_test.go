package command_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/gen/entail/policy/v1/policyv1connect"
)

// policies is a PolicyService that finds one thing and notes the question.
type policies struct {
	policyv1connect.UnimplementedPolicyServiceHandler
	asked *policyv1.Policy
}

func (p *policies) CheckPolicy(_ context.Context, r *policyv1.CheckPolicyRequest) (*policyv1.CheckPolicyResponse, error) {
	p.asked = r.GetPolicy()
	return &policyv1.CheckPolicyResponse{Findings: &policyv1.Findings{Diagnostics: []*policyv1.Diagnostic{{
		Place: &policyv1.Place{File: "a.yaml", Line: 3, Column: 4}, Code: "E-DUP-TYPE", Message: "type twice", Hint: "keep one",
		Related: []*policyv1.Diagnostic_Related{{Place: &policyv1.Place{File: "policydocument/team/lb", Path: "spec"}, Message: "the first"}},
	}}}}, nil
}

func TestAPolicyIsCheckedBesideAStore(t *testing.T) {
	var p policies
	_, handler := policyv1connect.NewPolicyServiceHandler(&p)
	server := httptest.NewServer(handler)
	defer server.Close()
	file := written(t, "actions: []\n")
	ask := func(args ...string) outcome {
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
