package allinone

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/pflag"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/rbac"
)

// api is an external cluster that serves Stores.
type api struct {
	t  *testing.T
	mu sync.Mutex
	// there holds the names of existing objects; created lists the objects that the code created.
	there   map[string]bool
	created []string
	// allowed holds the accounts that the user may impersonate.
	allowed map[string]bool
	broken  bool
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	code, answer := a.answer(r)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		a.t.Error(err)
	}
}

func (a *api) answer(r *http.Request) (int, any) {
	group := metav1.APIGroup{Name: "core.platform-mesh.io", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "core.platform-mesh.io/v1alpha1", Version: "v1alpha1"}}}
	switch {
	case a.broken:
		return http.StatusForbidden, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	case r.URL.Path == "/apis":
		return http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group}}
	case r.URL.Path == "/api":
		return http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}}
	case r.URL.Path == "/apis/core.platform-mesh.io/v1alpha1":
		return http.StatusOK, metav1.APIResourceList{GroupVersion: "core.platform-mesh.io/v1alpha1", APIResources: []metav1.APIResource{{Name: "stores", Kind: "Store"}}}
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		var review authorizationv1.SelfSubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			a.t.Error(err)
		}
		about := review.Spec.ResourceAttributes
		if about.Verb != "impersonate" || about.Resource != "serviceaccounts" || about.Namespace != rbac.Namespace {
			a.t.Errorf("asked for %+v", about)
		}
		review.Status.Allowed = a.allowed[about.Name]
		return http.StatusCreated, review
	}
	var object map[string]any
	if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
		a.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	name := fmt.Sprint(object["metadata"].(map[string]any)["name"])
	if a.there[name] {
		return http.StatusConflict, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists}
	}
	a.created = append(a.created, name)
	return http.StatusCreated, object
}

func serveAPI(t *testing.T, a *api) *rest.Config {
	t.Helper()
	a.t = t
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	cfg := &rest.Config{Host: server.URL}
	cfg.ContentType = "application/json"
	return cfg
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func manifest(kind, name string) string {
	return fmt.Sprintf("apiVersion: core.platform-mesh.io/v1alpha1\nkind: %s\nmetadata: {name: %s}\n---\n", kind, name)
}

func TestCreateMissingSamplesKeepsExistingObjects(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		there   map[string]bool
		broken  bool
		created []string
		want    string
	}{
		"missing":          {content: manifest("Store", "a") + manifest("Store", "b"), created: []string{"Store/a", "Store/b"}},
		"one is there":     {content: manifest("Store", "a") + manifest("Store", "b"), there: map[string]bool{"a": true}, created: []string{"Store/b"}},
		"none in the file": {content: "---\n"},
		"a kind that is not served": {
			content: manifest("Store", "a") + manifest("Stone", "b"), created: []string{"Store/a"}, want: "create sample Stone/b: find its resource",
		},
		"a cluster that tells nothing": {content: manifest("Store", "a"), broken: true, want: "ask for the served kinds"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &api{there: test.there, broken: test.broken}
			created, err := createMissingSamples(t.Context(), serveAPI(t, a), sampleSource{path: file(t, test.content)})
			if !slices.Equal(created, test.created) || len(a.created) != len(created) {
				t.Errorf("created %v, want %v; the API server made %v", created, test.created, a.created)
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	if _, err := createMissingSamples(t.Context(), &rest.Config{}, sampleSource{path: "/nowhere"}); err == nil || !strings.Contains(err.Error(), "read samples") {
		t.Errorf("samples that are not there: %v", err)
	}
}

func allAccountNames() map[string]bool {
	all := map[string]bool{}
	for _, a := range rbac.ServiceAccounts() {
		all[a.Service] = true
	}
	return all
}

func TestServicesImpersonateAccountsIfUserCanImpersonateAll(t *testing.T) {
	but := func(service string) map[string]bool {
		all := allAccountNames()
		delete(all, service)
		return all
	}
	for name, test := range map[string]struct {
		allowed map[string]bool
		as      string
		broken  bool
		want    bool
		failed  bool
	}{
		"all":                      {allowed: allAccountNames(), want: true},
		"none":                     {},
		"not the last":             {allowed: but("implied-role")},
		"not the first":            {allowed: but("watcher")},
		"who impersonates already": {allowed: allAccountNames(), as: "somebody"},
		"a cluster that tells not": {broken: true, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := serveAPI(t, &api{allowed: test.allowed, broken: test.broken})
			cfg.Impersonate.UserName = test.as
			got, err := canImpersonateServices(t.Context(), cfg)
			if got != test.want || (err != nil) != test.failed {
				t.Errorf("got %t, %v", got, err)
			}
		})
	}
}

func TestStartPrintsIdentityOfServices(t *testing.T) {
	var told bytes.Buffer
	m := &localSystem{cfg: Config{Progress: &told}, servers: &servers{kube: serveAPI(t, &api{})}}
	if err := m.applyServiceAccounts(t.Context(), fstest.MapFS{}); err != nil {
		t.Fatal(err)
	}
	if want := "services act with your rights, because you may not impersonate serviceaccounts in namespace entail-system\n"; told.String() != want {
		t.Errorf("told is %q", told.String())
	}
	for accounts, want := range map[bool]string{false: "", true: "system:serviceaccount:entail-system:watcher"} {
		m.servers.accounts = accounts
		cfg, err := m.servers.restConfigFor("watcher")
		if err != nil || cfg.Impersonate.UserName != want || m.servers.kube.Impersonate.UserName != "" {
			t.Errorf("the watcher acts as %q, %v", cfg.Impersonate.UserName, err)
		}
	}
	m.servers.kube = serveAPI(t, &api{broken: true})
	if err := m.applyServiceAccounts(t.Context(), fstest.MapFS{}); err == nil || !strings.Contains(err.Error(), "ask for your rights") {
		t.Errorf("of a cluster that tells nothing: %v", err)
	}
}

func TestAwaitReadyReturnsWhenServiceIsReady(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked < 3 || r.URL.Path != "/readyz" {
			http.Error(w, "view: not all is known", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	if err := awaitAllReady(t.Context(), []*runningService{{name: "store-sync", address: server.URL}}); err != nil || asked != 3 {
		t.Errorf("asked %d times, %v", asked, err)
	}
	asked = -1 << 30
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("Ctrl-C"))
	err := (&runningService{name: "store-sync", address: server.URL}).awaitReady(ctx)
	if err == nil || !strings.Contains(err.Error(), "wait for store-sync: Ctrl-C") {
		t.Errorf("got %v", err)
	}
	if answer, ok := (&runningService{address: server.URL}).queryReadiness(t.Context()); ok || answer != "view: not all is known" {
		t.Errorf("it says %q, %t", answer, ok)
	}
	if answer, ok := (&runningService{address: "http://127.0.0.1:1"}).queryReadiness(t.Context()); ok || !strings.Contains(answer, "refused") {
		t.Errorf("of nobody: %q, %t", answer, ok)
	}
	if answer, ok := (&runningService{address: "://"}).queryReadiness(t.Context()); ok || answer == "" {
		t.Errorf("of no address: %q, %t", answer, ok)
	}
}

func TestRunEndsWhenServiceEnds(t *testing.T) {
	for name, test := range map[string]struct {
		run  func(context.Context, suppliedSettings) error
		want string // cause of the end of everything
		end  string
	}{
		"it fails":         {run: func(context.Context, suppliedSettings) error { return errors.New("no bus") }, want: "store-sync ended; its log is", end: "store-sync: no bus"},
		"it just ends":     {run: func(context.Context, suppliedSettings) error { return nil }, want: "store-sync ended; its log is"},
		"it ends as asked": {run: func(ctx context.Context, _ suppliedSettings) error { <-ctx.Done(); return nil }},
		"it ends badly":    {run: func(ctx context.Context, _ suppliedSettings) error { <-ctx.Done(); return errors.New("not drained") }, end: "store-sync: not drained"},
	} {
		t.Run(name, func(t *testing.T) {
			alive, fail := context.WithCancelCause(t.Context())
			defer fail(nil)
			m := &localSystem{logs: newLogs(t.TempDir(), &bytes.Buffer{}), fail: fail, servers: startServersForTest(t)}
			w, err := m.startService(t.Context(), serviceRunner{name: "store-sync", run: test.run})
			if err != nil {
				t.Fatal(err)
			}
			if test.want != "" {
				<-alive.Done()
			}
			end := w.stopAndWait()
			if (end == nil) != (test.end == "") || end != nil && end.Error() != test.end {
				t.Errorf("it ended with %v, want %q", end, test.end)
			}
			if cause := context.Cause(alive); (cause == nil) != (test.want == "") || cause != nil && !strings.Contains(cause.Error(), test.want) {
				t.Errorf("everything ended with %v, want %q", cause, test.want)
			}
			if err := m.logs.closeLogs(); err != nil {
				t.Error(err)
			}
		})
	}
}

// startServersForTest starts NATS, and returns servers with which a service can start.
func startServersForTest(t *testing.T) *servers {
	t.Helper()
	logs := newLogs(t.TempDir(), &bytes.Buffer{})
	s := &servers{kube: &rest.Config{Host: "http://127.0.0.1:1"}}
	if err := s.startNATS(Config{}, t.TempDir(), logs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(s.stopServers(), logs.closeLogs()) })
	return s
}

func TestSuppliedSettingsApplyToService(t *testing.T) {
	s := startServersForTest(t)
	given := make(chan suppliedSettings, 1)
	m := &localSystem{logs: newLogs(t.TempDir(), &bytes.Buffer{}), fail: func(error) {}, servers: s}
	w, err := m.startService(t.Context(), serviceRunner{name: "tuple-sync", run: func(_ context.Context, around suppliedSettings) error {
		given <- around
		return around.embed.Listener.Close()
	}})
	if err != nil {
		t.Fatal(err)
	}
	around := <-given
	if err := errors.Join(w.stopAndWait(), m.logs.closeLogs()); err != nil {
		t.Error(err)
	}
	if around.nats != s.nats.URL("tuple-sync") || !strings.Contains(around.nats, "tuple-sync:") || w.address != "http://"+around.embed.Listener.Addr().String() || around.embed.Log == nil {
		t.Errorf("given is %+v at %s", around, w.address)
	}
}

func TestExternalClusterIsReadFromKubeconfig(t *testing.T) {
	path := file(t, `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "https://cluster.example"}}],
contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x, users: [{name: u, user: {token: t}}]}`)
	s := &servers{}
	if err := s.useExternalCluster(Config{Kubeconfig: path}); err != nil || s.kube.Host != "https://cluster.example" || s.kubeconfig != path {
		t.Errorf("it is %+v, %v", s.kube, err)
	}
	if err := s.useExternalCluster(Config{Kubeconfig: path + ".other"}); err == nil || !strings.Contains(err.Error(), "read the kubeconfig of your cluster") {
		t.Errorf("a file that is not there: %v", err)
	}
	if s.apiServerDone() != nil {
		t.Error("a cluster of the user's is said to fail")
	}
}

func TestConfigBindsFlagsAndStateDirIsPrivate(t *testing.T) {
	cfg := Defaults()
	fs := pflag.NewFlagSet("up", pflag.ContinueOnError)
	cfg.BindFlags(fs)
	dir := filepath.Join(t.TempDir(), "a", "state")
	if err := fs.Parse([]string{"--state-dir", dir, "--nats-port=0", "--use-cluster", "--samples=s", "--manifests=m"}); err != nil {
		t.Fatal(err)
	}
	if cfg.Ports.NATS != 0 || cfg.Ports.Watcher != 18091 || !cfg.HasExternalCluster() || cfg.Samples != "s" || cfg.Manifests != "m" {
		t.Errorf("settings are %+v", cfg)
	}
	got, err := cfg.createStateDir()
	if err != nil || got != dir {
		t.Fatalf("the state is in %s, %v", got, err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "logs")} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	cfg.StateDir = file(t, "")
	if _, err := cfg.createStateDir(); err == nil || !strings.Contains(err.Error(), "make --state-dir") {
		t.Errorf("a file in its place: %v", err)
	}
}

func TestEndpointsListAllAddresses(t *testing.T) {
	s := startServersForTest(t)
	openFGA := newLogs(t.TempDir(), &bytes.Buffer{})
	if err := s.startOpenFGA(Config{}, t.TempDir(), openFGA); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = openFGA.closeLogs() }()
	m := &localSystem{dir: "/state", servers: s}
	for _, name := range []string{"watcher", "store-sync", "tuple-sync", "implied-role", "webhook"} {
		m.services = append(m.services, &runningService{name: name, address: "http://" + name})
	}
	e := m.listEndpoints(1500 * time.Millisecond)
	if e.SyncService != "http://watcher" || e.StoreService != "http://store-sync" || e.TupleService != "http://tuple-sync" || e.InferenceService != "http://implied-role" ||
		e.AccessService != "http://webhook" {
		t.Errorf("services are at %+v", e)
	}
	if e.Logs != "/state/logs" || e.Seconds != 1.5 || !strings.HasPrefix(e.OpenFGAHTTP, "http://127.0.0.1:") || !strings.Contains(e.NATS, "admin:") {
		t.Errorf("endpoints are %+v", e)
	}
}
