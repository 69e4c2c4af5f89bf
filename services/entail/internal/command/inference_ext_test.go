package command_test

import (
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
)

// fakeInferenceService is an InferenceService with prepared answers that keeps the last request.
type fakeInferenceService struct {
	inferencev1connect.UnimplementedInferenceServiceHandler
	explained *inferencev1.ExplainBindingRequest
	held      []*inferencev1.WhoHasRoleRequest
	previewed *inferencev1.PreviewRulesRequest
	preview   *inferencev1.Preview
	pages     int
	// truncated cuts off the lists of answers.
	truncated bool
	drift     *inferencev1.CheckDriftResponse
	// asked is the last request.
	asked any
	// env is the environment of the command.
	env map[string]string
}

func (i *fakeInferenceService) ListInferences(_ context.Context, r *inferencev1.ListInferencesRequest) (*inferencev1.ListInferencesResponse, error) {
	i.pages++
	i.asked = r
	if i.pages > 3 {
		return &inferencev1.ListInferencesResponse{}, nil
	}
	page := &inferencev1.ListInferencesResponse{Inferences: []*inferencev1.Inference{
		{Namespace: r.GetNamespace(), Parent: &inferencev1.Role{Name: fmt.Sprint("role", i.pages)}},
	}}
	if i.pages < 3 {
		page.NextPageToken = fmt.Sprint(i.pages)
	}
	return page, nil
}

func (i *fakeInferenceService) ExplainBinding(_ context.Context, r *inferencev1.ExplainBindingRequest) (*inferencev1.ExplainBindingResponse, error) {
	i.explained, i.asked = r, r
	return &inferencev1.ExplainBindingResponse{Name: r.GetName(), Role: &inferencev1.Role{Name: "admin"}, Truncated: i.truncated}, nil
}

func (i *fakeInferenceService) WhoHasRole(_ context.Context, r *inferencev1.WhoHasRoleRequest) (*inferencev1.WhoHasRoleResponse, error) {
	i.asked = r
	i.held = append(i.held, &inferencev1.WhoHasRoleRequest{Role: r.GetRole(), Namespace: r.GetNamespace(), PageToken: r.GetPageToken()})
	answer := &inferencev1.WhoHasRoleResponse{Holders: []*inferencev1.Holder{{Subject: &inferencev1.Subject{Kind: "User", Name: "alice"}}}}
	if len(i.held) == 1 {
		answer.NextPageToken = "more"
	}
	return answer, nil
}

func (i *fakeInferenceService) PreviewRules(_ context.Context, r *inferencev1.PreviewRulesRequest) (*inferencev1.PreviewRulesResponse, error) {
	i.previewed, i.asked = r, r
	return &inferencev1.PreviewRulesResponse{Preview: i.preview}, nil
}

// ask runs a command against i.
func (i *fakeInferenceService) ask(t *testing.T, args ...string) commandResult {
	t.Helper()
	_, handler := inferencev1connect.NewInferenceServiceHandler(i)
	server := httptest.NewServer(handler)
	defer server.Close()
	env := map[string]string{"ENTAIL_INFERENCE_SERVER": server.URL, "HOME": t.TempDir()}
	maps.Copy(env, i.env)
	return run(t, env, args...)
}

func TestInferencesFollowsPages(t *testing.T) {
	var i fakeInferenceService
	got := i.ask(t, "inferences", "-n", "team-a")
	if got.code != 0 || i.pages != 3 || !strings.Contains(got.out, "role1") || !strings.Contains(got.out, "role3") || !strings.Contains(got.out, "team-a") {
		t.Errorf("%d pages: %+v", i.pages, got)
	}
}

func TestEmptyListPrintsMessage(t *testing.T) {
	for where, want := range map[string]string{
		"-n team-a": "No role implies another.\nThis answer is for namespace team-a; -A includes all namespaces.\n", "-A": "No role implies another.\n",
	} {
		i := fakeInferenceService{pages: 3}
		if got := i.ask(t, append([]string{"inferences"}, strings.Fields(where)...)...); got.out != want || got.code != 0 {
			t.Errorf("%s: %+v", where, got)
		}
	}
}

func TestExplainRoleBindingSendsRequest(t *testing.T) {
	var i fakeInferenceService
	got := i.ask(t, "explain", "rolebinding", "b", "-n", "team-a")
	if i.explained.GetName() != "b" || i.explained.GetNamespace() != "team-a" || !strings.Contains(got.out, "RoleBinding b grants admin") {
		t.Errorf("asked %v, got %+v", i.explained, got)
	}
}

func TestWhoHasAcceptsRoleAndClusterRole(t *testing.T) {
	tests := map[string]struct{ kind, name string }{
		"writer": {"Role", "writer"}, "role/writer": {"Role", "writer"}, "clusterrole/view": {"ClusterRole", "view"}, "ClusterRole/view": {"ClusterRole", "view"},
	}
	for argument, want := range tests {
		t.Run(argument, func(t *testing.T) {
			var i fakeInferenceService
			got := i.ask(t, "who-has", argument)
			if got.code != 0 || strings.Count(got.out, "user:alice") != 2 || len(i.held) != 2 || i.held[1].GetPageToken() != "more" {
				t.Fatalf("asked %v, got %+v", i.held, got)
			}
			if r := i.held[0]; r.GetRole().GetKind() != want.kind || r.GetRole().GetName() != want.name || r.GetNamespace() != "default" {
				t.Errorf("asked %v, want %v", r, want)
			}
		})
	}
	for _, bad := range []string{"a/b", "role/", "role/a/b", ""} {
		if got := new(fakeInferenceService).ask(t, "who-has", bad); got.code != 2 {
			t.Errorf("%q: exit code %d, want 2", bad, got.code)
		}
	}
}

const ruleFile = `
apiVersion: role.k8s.com/v1alpha1
kind: ImpliedRoles
metadata: {name: one, namespace: team-a}
spec: {inference_rule: {parent_role: admin, child_role: writer}}
---
---
apiVersion: role.k8s.com/v1alpha1
kind: ImpliedRoles
metadata: {name: two}
spec: {inference_rule: {parent_role: admin, child_role: view, child_kind: ClusterRole}}
`

func written(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPreviewRulesSendsRulesOfFile(t *testing.T) {
	i := fakeInferenceService{preview: &inferencev1.Preview{Created: 2}}
	got := i.ask(t, "preview", "rules", "-n", "team-a", "-f", written(t, ruleFile), "--remove", "three,four")
	want := `one:false:admin>writer two:false:admin>ClusterRole/view three:true four:true`
	var sent []string
	for _, c := range i.previewed.GetChanges() {
		text := fmt.Sprintf("%s:%t", c.GetName(), c.GetRemove())
		if c.GetParent() != nil {
			text += fmt.Sprintf(":%s>%s", c.GetParent().GetName(), strings.TrimPrefix(c.GetChild().GetKind()+"/"+c.GetChild().GetName(), "/"))
		}
		sent = append(sent, text)
	}
	if strings.Join(sent, " ") != want || i.previewed.GetNamespace() != "team-a" {
		t.Errorf("asked for %v in %q, want %s in team-a", sent, i.previewed.GetNamespace(), want)
	}
	if got.code != 0 || !strings.Contains(got.out, "2 RoleBindings to create") {
		t.Errorf("got %+v", got)
	}
}

func TestPreviewRulesReadsLists(t *testing.T) {
	const (
		one  = `{"apiVersion":"role.k8s.com/v1alpha1","kind":"ImpliedRoles","metadata":{"name":"one"},"spec":{"inference_rule":{"parent_role":"a","child_role":"b"}}}`
		two  = `{"metadata":{"name":"two"},"spec":{"inference_rule":{"parent_role":"a","child_role":"c"}}}`
		list = `{"apiVersion":"v1","kind":"List","items":[` + one + `]}`
		kind = `{"apiVersion":"role.k8s.com/v1alpha1","kind":"ImpliedRolesList","items":[` + two + `]}`
	)
	first, _, _ := strings.Cut(ruleFile, "---")
	for name, c := range map[string]struct{ file, want string }{
		"a list of anything":           {list, "one"},
		"a list of rules":              {kind, "two"},
		"lists and rules":              {list + "\n---\n" + first + "---\n" + kind, "one one two"},
		"an empty list and one of one": {"kind: List\nitems: []\n---\n# nothing\n---\n" + list, "one"},
		"JSON after JSON":              {list + kind, "one two"},
	} {
		t.Run(name, func(t *testing.T) {
			var i fakeInferenceService
			got := i.ask(t, "preview", "rules", "-n", "team-a", "-f", written(t, strings.ReplaceAll(c.file, ", namespace: team-a", "")))
			var names []string
			for _, change := range i.previewed.GetChanges() {
				names = append(names, change.GetName())
			}
			if strings.Join(names, " ") != c.want || got.code != 0 {
				t.Errorf("asked for %q, want %q: %+v", names, c.want, got)
			}
		})
	}
}

func TestPreviewRulesFailsForRejectedRule(t *testing.T) {
	i := fakeInferenceService{preview: &inferencev1.Preview{Refusals: []*inferencev1.Refusal{{Name: "one", Reason: "ProhibitedRole", Message: "m"}}}}
	got := i.ask(t, "preview", "rules", "--remove", "x")
	if got.code != 1 || !strings.Contains(got.out, "Rule one would not count") || !strings.Contains(got.err, "would not be accepted") {
		t.Errorf("got %+v", got)
	}
	if i.previewed.GetNamespace() != "default" {
		t.Errorf("asked in %q, want default", i.previewed.GetNamespace())
	}
}

func TestPreviewRulesRefusesUnreadableFile(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"nothing":                {nil, "give rules by -f"},
		"no such file":           {[]string{"-f", "/nowhere"}, "no such file"},
		"no YAML":                {[]string{"-f", written(t, "{")}, "document 1"},
		"another kind":           {[]string{"-f", written(t, "kind: Store\nmetadata: {name: x}")}, `a "Store" named "x"`},
		"rules of all":           {[]string{"-f", written(t, "kind: ClusterImpliedRoles\nmetadata: {name: x}")}, "one rule of one namespace, and there are no others"},
		"no name":                {[]string{"-f", written(t, "kind: ImpliedRoles")}, `named ""`},
		"another kind in a list": {[]string{"-f", written(t, "kind: List\nitems: [{kind: Store, metadata: {name: x}}]")}, `document 1 of the rules: item 1: a "Store" named "x"`},
		"no kind in a list":      {[]string{"-f", written(t, "kind: List\nitems: [{metadata: {name: x}}]")}, `item 1: a "" named "x"`},
		"a second document":      {[]string{"-f", written(t, "---\n# nothing\n---\nkind: ImpliedRoles\nmetadata: {name: x}\n---\nkind: Store")}, "document 3"},
		"two namespaces":         {[]string{"-f", written(t, ruleFile)}, "one namespace at a time"},
		"another than asked for": {[]string{"-n", "b", "-f", written(t, ruleFile)}, "one namespace at a time"},
		"too much":               {[]string{"-f", written(t, strings.Repeat("#\n", 3<<20))}, "more than 4194304 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var i fakeInferenceService
			got := i.ask(t, append([]string{"preview", "rules"}, test.args...)...)
			if got.code != 2 || !strings.Contains(got.err, test.want) || i.previewed != nil {
				t.Errorf("got %+v, want %q", got, test.want)
			}
		})
	}
}
