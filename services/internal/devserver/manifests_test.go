package devserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/rbac"
)

// fakeAPIServer imitates an API server that accepts all patches, except those with a refusal.
type fakeAPIServer struct {
	t  *testing.T
	mu sync.Mutex
	// applied lists the paths with their queries, in order.
	applied []string
	// refusals holds the first answers to a patch, by path.
	refusals map[string][]metav1.Status
	// unready is the number of answers that report a CRD as not established.
	unready int
	// waited is called after each of these answers.
	waited func()
	// denials is the number of answers that deny a right.
	denials int
	reviews []authorizationv1.SubjectAccessReviewSpec
}

func (a *fakeAPIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		a.t.Error(err)
	}
	code, answer := http.StatusOK, any(json.RawMessage(body))
	switch {
	case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		code, answer = http.StatusCreated, a.review(body)
	case r.Method == http.MethodPatch:
		if refused := a.refusals[r.URL.Path]; len(refused) > 0 {
			a.refusals[r.URL.Path] = refused[1:]
			code, answer = int(refused[0].Code), refused[0]
			break
		}
		a.applied = append(a.applied, r.URL.Path)
		if r.URL.Query().Get("force") != "true" || r.URL.Query().Get("fieldManager") != manifestManager {
			a.t.Errorf("%s is applied with %s", r.URL.Path, r.URL.RawQuery)
		}
	default:
		status := map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
		if a.unready > 0 {
			a.unready--
			if a.waited != nil {
				a.waited()
			}
			status = nil
		}
		answer = map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "x"}, "status": status}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		a.t.Error(err)
	}
}

func (a *fakeAPIServer) review(body []byte) authorizationv1.SubjectAccessReview {
	var review authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(body, &review); err != nil {
		a.t.Error(err)
	}
	a.reviews = append(a.reviews, review.Spec)
	a.denials--
	review.Status.Allowed = a.denials < 0
	return review
}

func startFakeAPIServer(t *testing.T, a *fakeAPIServer) *rest.Config {
	t.Helper()
	a.t = t
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	cfg := &rest.Config{Host: server.URL, QPS: -1}
	cfg.ContentType = "application/json"
	return cfg
}

const (
	crdYAML    = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: stores.core.platform-mesh.io}\n"
	policyYAML = "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n---\n"
	crdPath    = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/stores.core.platform-mesh.io"
	policyPath = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/p"
)

func deployFS(edit func(fstest.MapFS)) fs.FS {
	files := fstest.MapFS{"crd/a.yaml": {Data: []byte(crdYAML)}, "admission/b.yaml": {Data: []byte(policyYAML)}}
	if edit != nil {
		edit(files)
	}
	return files
}

func refusingAPIServer(text string, code int32) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: metav1.StatusReasonForbidden, Message: text,
	}
}

func TestApplyManifestsWaitsForServedKinds(t *testing.T) {
	policy := refusingAPIServer(`admission policy "p" failed to configure: no kind of its parameters`, http.StatusForbidden)
	for name, server := range map[string]*fakeAPIServer{
		"at once":                         {},
		"a kind takes a while":            {unready: 3},
		"a policy is not configured yet":  {refusals: map[string][]metav1.Status{policyPath: {policy, policy}}},
		"a policy that is none yet keeps": {refusals: map[string][]metav1.Status{crdPath: {policy}}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := ApplyManifests(t.Context(), startFakeAPIServer(t, server), deployFS(nil)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(server.applied, []string{crdPath, policyPath}) || server.unready != 0 {
				t.Errorf("applied are %v", server.applied)
			}
		})
	}
}

func TestApplyManifestsNamesFailedManifest(t *testing.T) {
	for name, test := range map[string]struct {
		edit     func(fstest.MapFS)
		refusals map[string][]metav1.Status
		want     string
	}{
		"none of a kind":      {edit: func(m fstest.MapFS) { delete(m, "admission/b.yaml") }, want: "applying manifests: no admission/*.yaml"},
		"no YAML":             {edit: func(m fstest.MapFS) { m["crd/a.yaml"] = &fstest.MapFile{Data: []byte("a: b: c")} }, want: "applying crd/a.yaml: decoding"},
		"no name":             {edit: func(m fstest.MapFS) { m["crd/a.yaml"] = &fstest.MapFile{Data: []byte(crdYAML + "---\nkind: Store\n")} }, want: "applying crd/a.yaml: document 2 lacks a kind or a name"},
		"no kind":             {edit: func(m fstest.MapFS) { m["crd/a.yaml"] = &fstest.MapFile{Data: []byte("metadata: {name: x}")} }, want: "document 1 lacks a kind or a name"},
		"one that is refused": {refusals: map[string][]metav1.Status{policyPath: {refusingAPIServer("you may not", http.StatusForbidden)}}, want: "applying admission/b.yaml: ValidatingAdmissionPolicy p: you may not"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &fakeAPIServer{refusals: test.refusals}
			if err := ApplyManifests(t.Context(), startFakeAPIServer(t, server), deployFS(test.edit)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestAwaitCRDNamesKindOnTimeout(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("the time is over")
	server := &fakeAPIServer{unready: 1 << 30, waited: func() { cancel(over) }}
	err := ApplyManifests(ctx, startFakeAPIServer(t, server), deployFS(nil))
	if !errors.Is(err, over) || !strings.Contains(err.Error(), "waiting for CRD stores.core.platform-mesh.io") {
		t.Errorf("got %v", err)
	}
}

func TestApplyServiceAccountsWaitsForRights(t *testing.T) {
	server := &fakeAPIServer{denials: 2}
	account := &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: watcher, namespace: entail-system}\n")}
	deploy := fstest.MapFS{
		"base/namespace.yaml":    {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: entail-system}\n")},
		"base/roles.yaml":        {Data: []byte("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: people}\n")},
		"base/watcher/rbac.yaml": account,
	}
	if err := ApplyServiceAccounts(t.Context(), startFakeAPIServer(t, server), deploy); err != nil {
		t.Fatal(err)
	}
	if want := []string{
		"/api/v1/namespaces/entail-system", "/api/v1/namespaces/entail-system/serviceaccounts/watcher",
	}; !slices.Equal(server.applied, want) {
		t.Errorf("applied are %v", server.applied)
	}
	asked := map[string]int{}
	for _, review := range server.reviews {
		asked[review.User]++
	}
	if users := slices.Sorted(maps.Keys(asked)); !slices.Equal(users, slices.Sorted(slices.Values(rbac.AccountUserNames()))) {
		t.Errorf("asked for %v", asked)
	}
}

func TestAwaitRightReviewsGivenRight(t *testing.T) {
	server := &fakeAPIServer{}
	right := rbac.Right{PolicyRule: rbacv1.PolicyRule{
		Verbs: []string{"update", "get"}, APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"entail-watcher"},
	}}
	cfg := startFakeAPIServer(t, server)
	if err := AwaitUserRight(t.Context(), cfg, "alice", "entail-system", right); err != nil {
		t.Fatal(err)
	}
	want := authorizationv1.ResourceAttributes{Namespace: "entail-system", Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Name: "entail-watcher"}
	if len(server.reviews) != 1 || server.reviews[0].User != "alice" || *server.reviews[0].ResourceAttributes != want {
		t.Errorf("asked %+v", server.reviews)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := AwaitUserRight(ctx, cfg, "alice", "", right); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "waiting until alice may update leases") {
		t.Errorf("got %v", err)
	}
}

func TestApplyManifestsKeepsForeignCRD(t *testing.T) {
	const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"x","labels":{"app.kubernetes.io/part-of":"entail"}}}`
	server := &fakeAPIServer{t: t} // Its CRD has no label.
	files := fstest.MapFS{"crd/x.yaml": {Data: []byte(definition)}}
	if err := applyMatchingManifests(t.Context(), startFakeAPIServer(t, server), files, []string{"crd/*.yaml"}); err != nil {
		t.Fatal(err)
	}
	if len(server.applied) > 0 {
		t.Errorf("applied were %v", server.applied)
	}
}
