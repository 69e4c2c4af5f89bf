package command_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
)

func (i *fakeInferenceService) ExplainRole(_ context.Context, r *inferencev1.ExplainRoleRequest) (*inferencev1.ExplainRoleResponse, error) {
	i.asked = r
	return &inferencev1.ExplainRoleResponse{}, nil
}

func (i *fakeInferenceService) ListEffectiveRoles(_ context.Context, r *inferencev1.ListEffectiveRolesRequest) (*inferencev1.ListEffectiveRolesResponse, error) {
	i.asked = r
	roles := []*inferencev1.EffectiveRole{{Role: &inferencev1.Role{Name: "writer"}}}
	return &inferencev1.ListEffectiveRolesResponse{Roles: roles, Truncated: i.truncated}, nil
}

func (i *fakeInferenceService) PreviewBinding(_ context.Context, r *inferencev1.PreviewBindingRequest) (*inferencev1.PreviewBindingResponse, error) {
	i.asked = r
	return &inferencev1.PreviewBindingResponse{Preview: i.preview}, nil
}

func (i *fakeInferenceService) CheckDrift(_ context.Context, r *inferencev1.CheckDriftRequest) (*inferencev1.CheckDriftResponse, error) {
	i.asked = r
	return i.drift, nil
}

func (i *fakeInferenceService) WatchInferences(
	_ context.Context, r *inferencev1.WatchInferencesRequest, to *connect.ServerStream[inferencev1.WatchInferencesResponse],
) error {
	i.asked = r
	return to.Send(&inferencev1.WatchInferencesResponse{
		Type: inferencev1.WatchInferencesResponse_TYPE_CHANGE, ResumeToken: "x.1",
		Removed: []*inferencev1.InferenceKey{{Namespace: "team-a", Parent: &inferencev1.Role{Name: "admin"}}},
	})
}

func TestCutAnswersAboutRolesAreUndecided(t *testing.T) {
	for _, args := range []string{
		"what-has alice", "what-has alice -o json", "explain rolebinding b", "preview binding b --role admin --subject alice",
	} {
		i := fakeInferenceService{truncated: true, preview: &inferencev1.Preview{Truncated: true}}
		if got := i.ask(t, strings.Fields(args)...); got.code != 5 || got.err != "" {
			t.Errorf("%s: got %+v, want the exit code 5 and the note in the output", args, got)
		}
	}
}

func TestParseSubjectReadsEachForm(t *testing.T) {
	for argument, want := range map[string]string{
		"alice": "User  alice", "user:group:x": "User  group:x", "system:serviceaccount:ns:bot": "User  system:serviceaccount:ns:bot",
		"group:system:authenticated": "Group  system:authenticated", "group:a/b": "Group  a/b",
		"serviceaccount:bot": "ServiceAccount  bot", "serviceaccount:ns/bot": "ServiceAccount ns bot",
	} {
		var i fakeInferenceService
		got := i.ask(t, "what-has", argument, "-n", "team-a", "--group", "g,h")
		r, ok := i.asked.(*inferencev1.ListEffectiveRolesRequest)
		if !ok || got.code != 0 || !strings.Contains(got.out, "writer") || r.GetNamespace() != "team-a" || len(r.GetGroups()) != 2 {
			t.Fatalf("%s: asked %v, got %+v", argument, i.asked, got)
		}
		if s := r.GetSubject(); fmt.Sprint(s.GetKind(), " ", s.GetNamespace(), " ", s.GetName()) != want {
			t.Errorf("%s is read as %v", argument, s)
		}
	}
	for _, bad := range []string{"", "user:", "serviceaccount:ns/"} {
		if got := new(fakeInferenceService).ask(t, "what-has", bad); got.code != 2 {
			t.Errorf("%q: exit code %d, want 2", bad, got.code)
		}
	}
}

func TestExplainRoleRequiresRoleAndSubject(t *testing.T) {
	var i fakeInferenceService
	got := i.ask(t, "explain", "role", "clusterrole/view", "--for", "alice")
	r, ok := i.asked.(*inferencev1.ExplainRoleRequest)
	if !ok || got.code != 0 || r.GetRole().GetKind() != "ClusterRole" || r.GetSubject().GetName() != "alice" || r.GetNamespace() != "default" {
		t.Errorf("asked %v, got %+v", i.asked, got)
	}
	if got := i.ask(t, "explain", "role", "view", "--for", "alice", "-o", "json"); !strings.Contains(got.out, `"held": false`) {
		t.Errorf("no is not said: %+v", got)
	}
	if got := i.ask(t, "explain", "role", "view"); got.code != 2 {
		t.Errorf("of nobody: %+v", got)
	}
}

func TestPreviewBindingSendsRequestedBinding(t *testing.T) {
	i := fakeInferenceService{preview: &inferencev1.Preview{}}
	got := i.ask(t, "preview", "binding", "b", "-n", "team-a", "--role", "admin", "--subject", "alice,group:g")
	r, ok := i.asked.(*inferencev1.PreviewBindingRequest)
	if !ok || got.code != 0 || r.GetName() != "b" || r.GetRole().GetName() != "admin" || len(r.GetSubjects()) != 2 || r.GetRemove() {
		t.Errorf("asked %v, got %+v", i.asked, got)
	}
	if got.err != "" {
		t.Errorf("without a kubeconfig: %+v", got)
	}
	i.env = map[string]string{"KUBECONFIG": written(t, loadKubeconfig)}
	if got := i.ask(t, "preview", "binding", "b", "--role", "admin"); got.code != 0 || !strings.Contains(got.err, "Not checked whether you may do this") {
		t.Errorf("with one that leads nowhere: %+v", got)
	}
	got = i.ask(t, "preview", "binding", "b", "--remove")
	if r, ok = i.asked.(*inferencev1.PreviewBindingRequest); !ok || got.code != 0 || !r.GetRemove() || r.GetRole() != nil {
		t.Errorf("asked %v, got %+v", i.asked, got)
	}
	for _, bad := range [][]string{nil, {"--remove", "--role", "x"}, {"--role", "a/b"}, {"--role", "x", "--subject", "user:"}} {
		if got := i.ask(t, append([]string{"preview", "binding", "b"}, bad...)...); got.code != 2 {
			t.Errorf("%v: %+v", bad, got)
		}
	}
}

func TestDriftExitsWithErrorOnDrift(t *testing.T) {
	i := fakeInferenceService{drift: &inferencev1.CheckDriftResponse{InStep: true}}
	if got := i.ask(t, "inferences", "drift", "-n", "team-a"); got.code != 0 || !strings.Contains(got.out, "All is as it should be") {
		t.Errorf("in step: %+v", got)
	}
	i.drift = &inferencev1.CheckDriftResponse{Extra: []*inferencev1.BindingChange{{Name: "ir-1", Source: "b", Role: &inferencev1.Role{Name: "writer"}}}}
	if got := i.ask(t, "inferences", "drift"); got.code != 1 || !strings.Contains(got.out, "ir-1") || !strings.Contains(got.out, "extra") {
		t.Errorf("with something extra: %+v", got)
	}
}

func TestWatchPrintsChangesUntilStreamEnds(t *testing.T) {
	var i fakeInferenceService
	got := i.ask(t, "inferences", "watch", "-n", "team-a", "--resume", "x.0")
	r, ok := i.asked.(*inferencev1.WatchInferencesRequest)
	if !ok || got.code != 0 || got.out != "team-a: admin implies nothing any more\n" || r.GetNamespace() != "team-a" || r.GetResumeToken() != "x.0" {
		t.Errorf("asked %v, got %+v", i.asked, got)
	}
}

const loadKubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- {name: c, context: {cluster: x, namespace: team-k}}\n"

func TestNamespaceDefaultsToKubeconfigContext(t *testing.T) {
	config := written(t, loadKubeconfig)
	for what, c := range map[string]struct {
		kubeconfig, want string
		args             []string
	}{
		"of the kubeconfig": {config, "team-k", nil},
		"of the flag":       {config, "team-a", []string{"-n", "team-a"}},
		"without any":       {"/does/not/exist", "default", nil},
		"of a broken one":   {written(t, "{"), "default", nil},
	} {
		i := fakeInferenceService{env: map[string]string{"KUBECONFIG": c.kubeconfig}}
		got := i.ask(t, append([]string{"explain", "role", "view", "--for", "alice"}, c.args...)...)
		if r, ok := i.asked.(*inferencev1.ExplainRoleRequest); !ok || r.GetNamespace() != c.want {
			t.Errorf("%s: asked %v, got %+v", what, i.asked, got)
		}
	}
}

func TestMinRevisionIsSentWithRequest(t *testing.T) {
	for _, line := range []string{
		"inferences", "inferences drift", "who-has view", "what-has alice", "explain role view --for alice", "explain rolebinding b",
		"preview binding b --remove", "preview rules --remove x",
	} {
		i := fakeInferenceService{pages: 2, preview: &inferencev1.Preview{}, drift: &inferencev1.CheckDriftResponse{InStep: true}}
		got := i.ask(t, append(strings.Fields(line), "--min-revision", "7@x")...)
		if r, ok := i.asked.(interface{ GetMinRevision() string }); !ok || got.code != 0 || r.GetMinRevision() != "7@x" {
			t.Errorf("%s: asked %v, got %+v", line, i.asked, got)
		}
	}
}

// namespacedRequest is a request with a namespace.
type namespacedRequest interface{ GetNamespace() string }

func TestEveryCommandUsesNamespaceOfKubeconfig(t *testing.T) {
	one, _, _ := strings.Cut(strings.ReplaceAll(ruleFile, ", namespace: team-a", ""), "---")
	env := map[string]string{"KUBECONFIG": written(t, loadKubeconfig)}
	for line, want := range map[string]string{
		"inferences": "team-k", "inferences -A": "", "inferences --all-namespaces=false": "team-k", "inferences -n team-a": "team-a",
		"inferences watch": "team-k", "inferences watch -A": "", "inferences drift": "team-k",
		"who-has view": "team-k", "what-has alice": "team-k", "explain role view --for alice": "team-k", "explain rolebinding b": "team-k",
		"preview binding b --remove": "team-k", "preview rules --remove x": "team-k", "preview rules -f " + written(t, one): "team-k",
		"preview rules -n team-b -f " + written(t, one): "team-b",
	} {
		i := fakeInferenceService{env: env, pages: 2, preview: &inferencev1.Preview{}, drift: &inferencev1.CheckDriftResponse{InStep: true}}
		got := i.ask(t, strings.Fields(line)...)
		if r, ok := i.asked.(namespacedRequest); !ok || got.code != 0 || r.GetNamespace() != want {
			t.Errorf("%s: asked %v, want it in %q; got %+v", line, i.asked, want, got)
		}
	}
	var i fakeInferenceService
	if got := i.ask(t, "inferences", "-A", "-n", "team-a"); got.code != 2 || i.asked != nil {
		t.Errorf("all namespaces, and one: %+v", got)
	}
	var traced string
	env["ENTAIL_SERVER"] = serve(t, fakeSyncService{trace: func(r *syncv1.TraceObjectRequest) (*syncv1.TraceObjectResponse, error) {
		traced = r.GetNamespace()
		return demo(step(eventv1.Outcome_OUTCOME_APPLIED)), nil
	}}, nil)
	if got := run(t, env, "trace", "rolebinding/b"); got.code != 0 || traced != "team-k" {
		t.Errorf("traced in %q: %+v", traced, got)
	}
}

func TestCompletionIgnoresUnreachableServer(t *testing.T) {
	asked, release := make(chan struct{}, 10), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}))
	defer silent.Close()
	defer close(release)
	config := func(server string) string {
		return written(t, loadKubeconfig+"clusters:\n- {name: x, cluster: {server: '"+server+"'}}\n")
	}
	for what, file := range map[string]string{
		"that never answers": config(silent.URL), "that is not there": config("http://127.0.0.1:1"), "that nobody names": "/does/not/exist",
	} {
		got := run(t, map[string]string{"KUBECONFIG": file}, "__complete", "explain", "rolebinding", "")
		if got.code != 0 || got.out != ":4\n" {
			t.Errorf("a server %s: %+v", what, got)
		}
	}
	if len(asked) != 1 {
		t.Errorf("the server that never answers was asked %d times", len(asked))
	}
}
