package policy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/gen/entail/policy/v1/policyv1connect"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// broken refers to a type that does not exist, and declares an action twice.
const broken = `resourceTypes:
  - name: tenant
    idPrefix: idntten
    relationships:
      - relation: parent
        targetTypes: [{name: tennant}]
actions:
  - name: tenant_get
  - name: tenant_get
`

func TestEveryProcedureRequiresRight(t *testing.T) {
	access, service := RequiredAccess(), policyv1.File_entail_policy_v1_policy_proto.Services().ByName("PolicyService")
	for i := range service.Methods().Len() {
		if name := string(service.Methods().Get(i).Name()); access["/"+policyv1connect.PolicyServiceName+"/"+name] == nil {
			t.Errorf("%s has no rule", name)
		}
	}
	diff := func(before, after *policyv1.Policy) any {
		return &policyv1.DiffPoliciesRequest{Old: before, New: after}
	}
	files, demo, other := policyOfFile(""), policyOfStore("demo"), policyOfStore("other")
	for want, requests := range map[string]map[string]any{
		"get /entail/policy": {
			policyv1connect.PolicyServiceCheckPolicyProcedure:  &policyv1.CheckPolicyRequest{Policy: files},
			policyv1connect.PolicyServiceDiffPoliciesProcedure: diff(files, files),
		},
		"get stores.core.platform-mesh.io/demo": {
			policyv1connect.PolicyServiceCheckPolicyProcedure:   &policyv1.CheckPolicyRequest{Policy: demo},
			policyv1connect.PolicyServiceCompilePolicyProcedure: &policyv1.CompilePolicyRequest{Policy: demo},
			policyv1connect.PolicyServiceExplainActionProcedure: &policyv1.ExplainActionRequest{Policy: demo},
			policyv1connect.PolicyServiceGraphPolicyProcedure:   &policyv1.GraphPolicyRequest{Policy: demo},
			policyv1connect.PolicyServiceDiffPoliciesProcedure:  diff(demo, files),
		},
		"list stores.core.platform-mesh.io": {policyv1connect.PolicyServiceDiffPoliciesProcedure: diff(demo, other)},
	} {
		for procedure, request := range requests {
			if right, err := access[procedure](request); err != nil || right.String() != want {
				t.Errorf("%s needs %q, %v; want %q", procedure, right, err, want)
			}
		}
	}
	for name, request := range map[string]any{"new is a store": diff(files, demo), "the same store twice": diff(demo, demo)} {
		if right, err := access[policyv1connect.PolicyServiceDiffPoliciesProcedure](request); err != nil || right.Name != "demo" || right.Verb != "get" {
			t.Errorf("%s: %v, %v", name, right, err)
		}
	}
	for procedure, rule := range access {
		right, err := rule(&policyv1.Policy{})
		if brought := procedure == policyv1connect.PolicyServiceFormatPolicyProcedure; (err == nil) != brought || brought && right.Path == "" {
			t.Errorf("%s: of any message the rule says %v, %v", procedure, right, err)
		}
	}
}

func TestCheckPolicyReadsFilesAndStores(t *testing.T) {
	s := newServer(t)
	for name, p := range map[string]*policyv1.Policy{"files": policyOfFile(example(t)), "store": policyOfStore("demo")} {
		got := must(s.CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: p}))(t)
		if !got.GetOk() || got.GetFindings().GetTotal() != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	_, err := s.CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: policyOfStore("other")})
	expectRefused(t, err, connect.CodeNotFound, `no Store "other"`)
}

func TestCheckPolicyMergesDocuments(t *testing.T) {
	first, second, _ := strings.Cut(example(t), "\n---\n")
	p := policyOfFile(first)
	if got := must(newServer(t).CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: p}))(t); !got.GetOk() {
		t.Fatalf("tenants alone: %v", got)
	}
	p.GetFiles().Files = append(p.GetFiles().GetFiles(), &policyv1.File{Name: "b.yaml", Content: []byte(second)})
	got := must(newServer(t).CompilePolicy(t.Context(), &policyv1.CompilePolicyRequest{Policy: p, Target: policyv1.Target_TARGET_SPICEDB}))(t)
	if content := got.GetArtifacts()[0].GetContent(); content != golden(t, "schema.zed") {
		t.Errorf("of two files:\n%s", content)
	}
}

func TestCheckPolicyReturnsPlaces(t *testing.T) {
	got := must(newServer(t).CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: policyOfFile(broken)}))(t)
	if want := []string{"E-UNKNOWN-TYPE", "E-DUP-ACTION"}; got.GetOk() || !slices.Equal(codes(got.GetFindings()), want) {
		t.Fatalf("found %v", got)
	}
	d := got.GetFindings().GetDiagnostics()[1]
	want := &policyv1.Diagnostic{
		Place: &policyv1.Place{File: "policy.yaml", Document: 1, Line: 9, Column: 11}, Code: "E-DUP-ACTION",
		Severity: policyv1.Severity_SEVERITY_ERROR, Message: d.GetMessage(), Hint: d.GetHint(),
		Related: []*policyv1.Diagnostic_Related{{
			Place: &policyv1.Place{File: "policy.yaml", Document: 1, Line: 8, Column: 11}, Message: d.GetRelated()[0].GetMessage(),
		}},
	}
	if !proto.Equal(d, want) || !strings.Contains(d.GetMessage(), "tenant_get") || d.GetHint() == "" {
		t.Errorf("got %v, want %v", d, want)
	}
}

// TestInvalidPolicyReturnsFindings asks everything about one.
func TestInvalidPolicyReturnsFindings(t *testing.T) {
	s, bad := newServer(t), policyOfFile(broken)
	want := []string{"E-UNKNOWN-TYPE", "E-DUP-ACTION"}
	compiled := must(s.CompilePolicy(t.Context(), &policyv1.CompilePolicyRequest{Policy: bad, Target: policyv1.Target_TARGET_SPICEDB}))(t)
	if len(compiled.GetArtifacts()) != 0 || !slices.Equal(codes(compiled.GetFindings()), want) {
		t.Errorf("compiled to %v", compiled)
	}
	explained := must(s.ExplainAction(t.Context(), &policyv1.ExplainActionRequest{Policy: bad, Type: "tenant", Action: "tenant_get"}))(t)
	if len(explained.GetNodes()) != 0 || explained.GetText() != "" || !slices.Equal(codes(explained.GetFindings()), want) {
		t.Errorf("explained by %v", explained)
	}
	drawn := must(s.GraphPolicy(t.Context(), &policyv1.GraphPolicyRequest{Policy: bad, Format: policyv1.Format_FORMAT_SVG}))(t)
	if drawn.GetContent() != "" || !slices.Equal(codes(drawn.GetFindings()), want) {
		t.Errorf("drawn as %v", drawn)
	}
	compared := must(s.DiffPolicies(t.Context(), &policyv1.DiffPoliciesRequest{Old: policyOfStore("demo"), New: bad}))(t)
	if compared.GetWorst() != policyv1.Class_CLASS_UNSPECIFIED || len(compared.GetChanges()) != 0 ||
		compared.GetOldFindings().GetTotal() != 0 || !slices.Equal(codes(compared.GetNewFindings()), want) {
		t.Errorf("compared: %v", compared)
	}
	compared = must(s.DiffPolicies(t.Context(), &policyv1.DiffPoliciesRequest{Old: bad, New: policyOfStore("demo")}))(t)
	if len(compared.GetChanges()) != 0 || compared.GetOldFindings().GetTotal() != 2 || compared.GetNewFindings().GetTotal() != 0 {
		t.Errorf("compared the other way: %v", compared)
	}
}

func TestCheckPolicyLintsOnRequest(t *testing.T) {
	p := policyOfFile(example(t, "      - name: project\n      - name: organization\n", ""))
	for lint, want := range map[bool]bool{false: false, true: true} {
		got := must(newServer(t).CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: p, Lint: lint}))(t)
		if !got.GetOk() || slices.Contains(codes(got.GetFindings()), "W-ONE-MEMBER-UNION") != want {
			t.Errorf("lint %t: %v", lint, got)
		}
		for _, d := range got.GetFindings().GetDiagnostics() {
			if d.GetSeverity() != policyv1.Severity_SEVERITY_WARNING {
				t.Errorf("lint %t: %v", lint, d)
			}
		}
	}
}

func TestOptionsArePassedToLanguage(t *testing.T) {
	p := policyOfFile(example(t))
	p.Options = &policyv1.Options{RoleSuffix: "_by", RoleType: "duty", RoleRelation: "holder", SubjectTypes: []string{"person", "robot"}}
	compile := func() string {
		got := must(newServer(t).CompilePolicy(t.Context(), &policyv1.CompilePolicyRequest{Policy: p, Target: policyv1.Target_TARGET_OPENFGA_DSL}))(t)
		return got.GetArtifacts()[0].GetContent()
	}
	for _, want := range []string{"define loadbalancer_get_by: [duty#holder]", "define holder: [person, robot]"} {
		if got := compile(); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	p.Options.Partial = true
	if got := compile(); strings.Contains(got, "type duty") {
		t.Errorf("there is a type of roles in\n%s", got)
	}
	p = policyOfFile(example(t, "name: tenant\n", "name: te_nant\n", "- name: tenant\n", "- name: te_nant\n", "- name: tenant\n", "- name: te_nant\n", "- name: tenant\n", "- name: te_nant\n"))
	p.Options = &policyv1.Options{Strict: true}
	if got := must(newServer(t).CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: p}))(t); !slices.Contains(codes(got.GetFindings()), "W-UNDERSCORE") {
		t.Errorf("strict: %v", got)
	}
	p.Options = &policyv1.Options{RoleSuffix: "x"}
	_, err := newServer(t).CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: p})
	expectRefused(t, err, connect.CodeInvalidArgument, "role suffix")
}

func TestRequestsAreLimited(t *testing.T) {
	entered, goOn := make(chan struct{}), make(chan struct{})
	s := New(func(context.Context, string, bool) ([]*syntax.Document, policy.Options, error) {
		entered <- struct{}{}
		<-goOn
		return nil, policy.Options{}, nil
	})
	answers := make(chan error)
	for range maxAtOnce {
		go func() {
			_, err := s.CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: policyOfStore("demo")})
			answers <- err
		}()
		<-entered
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := policyOfFile(example(t))
	calls := map[string]func() error{
		"check": func() error {
			_, err := s.CheckPolicy(ctx, &policyv1.CheckPolicyRequest{Policy: p})
			return err
		},
		"compile": func() error {
			_, err := s.CompilePolicy(ctx, &policyv1.CompilePolicyRequest{Policy: p})
			return err
		},
		"diff": func() error {
			_, err := s.DiffPolicies(ctx, &policyv1.DiffPoliciesRequest{Old: p, New: p})
			return err
		},
		"explain": func() error {
			_, err := s.ExplainAction(ctx, &policyv1.ExplainActionRequest{Policy: p})
			return err
		},
		"graph": func() error {
			_, err := s.GraphPolicy(ctx, &policyv1.GraphPolicyRequest{Policy: p})
			return err
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s has a turn while others have all: %v", name, err)
		}
	}
	close(goOn)
	for range maxAtOnce {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	late, end := context.WithTimeout(t.Context(), 10*time.Second)
	defer end()
	for n := range maxAtOnce {
		if _, err := s.limiter.Acquire(late); err != nil {
			t.Errorf("only %d turns were given back: %v", n, err)
		}
	}
}

// The request comes before the files are applied.
func TestCheckPolicyIncludesRegisteredDocuments(t *testing.T) {
	const volume = `resourceTypes:
  - name: volume
    idPrefix: storvol
    relationships:
      - relation: owner
        targetTypes:
          - name: tenant
`
	indented := strings.ReplaceAll(strings.TrimSuffix(example(t), "\n"), "\n", "\n  ")
	first, _, _ := strings.Cut(indented, "\n  ---")
	manifest := "apiVersion: iapl.infratographer.com/v1alpha1\nkind: PolicyDocument\nmetadata: {name: lb, namespace: team}\nspec:\n  storeRef: {name: demo}\n  " +
		strings.Replace(first, "targettypes", "targetTypes", 1) + "\n"
	for name, test := range map[string]struct {
		content  string
		replaces []string
		want     []string
	}{
		"a new document":                   {volume, nil, nil},
		"one that is there already":        {example(t), nil, []string{"E-DUP-TYPE"}},
		"a new version of it":              {example(t), []string{"team/lb"}, nil},
		"a manifest of the same object":    {manifest, nil, nil},
		"a name that no model has":         {strings.Replace(volume, "name: volume", "name: define", 1), nil, []string{"E-OPENFGA-KEYWORD"}},
		"a manifest that takes types away": {strings.Replace(manifest, "  resourceTypes", "  actions: []\n  # resourceTypes", 1), nil, []string{"E-"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := policyOfFile(test.content)
			p.Beside, p.Replaces = "demo", test.replaces
			got := must(newServer(t).CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: p}))(t)
			if got.GetOk() != (test.want == nil) || !got.GetOk() && !strings.HasPrefix(codes(got.GetFindings())[0], test.want[0]) {
				t.Errorf("found %v, want %q", got, test.want)
			}
		})
	}
	unused := policyOfFile("actions: [{name: unused}]\n")
	unused.Beside = "demo"
	got := must(newServer(t, "actions:\n", "actions:\n  - name: spare\n").CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: unused}))(t)
	if want := []string{"W-UNUSED-ACTION"}; !got.GetOk() || !slices.Equal(codes(got.GetFindings()), want) {
		t.Errorf("beside what is warned of itself: %v", got)
	}
	p := policyOfFile(volume)
	p.Beside, p.Replaces = "demo", []string{"team/other"}
	_, err := newServer(t).CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: p})
	expectRefused(t, err, connect.CodeNotFound, `no PolicyDocument "team/other"`)
	if right, err := RequiredAccess()[policyv1connect.PolicyServiceCheckPolicyProcedure](&policyv1.CheckPolicyRequest{Policy: p}); err != nil || right.Name != "demo" {
		t.Errorf("it needs %v, %v", right, err)
	}
}
