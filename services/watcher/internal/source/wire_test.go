package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/kinds"
)

// fakeAPIServer is an API server with fixed answers for each path.
type fakeAPIServer struct {
	t  *testing.T
	mu sync.Mutex
	// answers holds the bodies of each path. Other paths are not found.
	answers map[string]func(*http.Request) (int, any)
	asked   []*http.Request
}

func (w *fakeAPIServer) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, in)
	code, body := http.StatusNotFound, any("404 page not found")
	if answer := w.answers[in.URL.Path]; answer != nil {
		code, body = answer(in)
	}
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(code)
	var err error
	if text, ok := body.(string); ok {
		_, err = out.Write([]byte(text))
	} else {
		err = json.NewEncoder(out).Encode(body)
	}
	if err != nil {
		w.t.Error(err)
	}
}

func (w *fakeAPIServer) paths() string {
	var all []string
	for _, r := range w.asked {
		all = append(all, r.URL.Path)
	}
	return strings.Join(all, " ")
}

const (
	storesPath = "/apis/core.platform-mesh.io/v1alpha1/stores"
	groupPath  = "/apis/core.platform-mesh.io"
	system     = "/api/v1/namespaces/kube-system"
)

func dial(t *testing.T, answers map[string]func(*http.Request) (int, any)) (*Source, *fakeAPIServer) {
	t.Helper()
	w := &fakeAPIServer{t: t, answers: answers}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	s, err := New(&rest.Config{Host: server.URL}, "local")
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}

func ok(body any) func(*http.Request) (int, any) {
	return func(*http.Request) (int, any) { return http.StatusOK, body }
}

func failure(code int, reason metav1.StatusReason) (int, any) {
	return code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: "the server says " + string(reason),
	}
}

func failing(code int, reason metav1.StatusReason) func(*http.Request) (int, any) {
	return func(*http.Request) (int, any) { return failure(code, reason) }
}

func served(versions ...string) func(*http.Request) (int, any) {
	group := metav1.APIGroup{Name: "core.platform-mesh.io"}
	for _, v := range versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{Version: v})
	}
	return ok(group)
}

func lists(resources ...string) func(*http.Request) (int, any) {
	list := metav1.APIResourceList{}
	for _, r := range resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: r, SingularName: strings.TrimSuffix(r, "s"), ShortNames: []string{r[:2]}})
	}
	return ok(list)
}

func TestConfirmNotServedChecksDiscovery(t *testing.T) {
	older := kinds.Stores()
	older.FallbackVersion = "v1alpha0"
	for name, test := range map[string]struct {
		kind    kinds.Kind
		answers map[string]func(*http.Request) (int, any)
		absent  bool
		want    string
	}{
		"no such group":          {answers: nil, absent: true},
		"no version has it":      {answers: map[string]func(*http.Request) (int, any){groupPath: served("v1alpha1"), groupPath + "/v1alpha1": lists("pods")}, absent: true},
		"a version that is gone": {answers: map[string]func(*http.Request) (int, any){groupPath: served("v1alpha1")}, absent: true},
		"it comes or goes just now": {
			answers: map[string]func(*http.Request) (int, any){groupPath: served("v1alpha1"), groupPath + "/v1alpha1": lists("stores")},
			want:    "the API server is about to serve it, or about to stop",
		},
		"another version has it": {
			answers: map[string]func(*http.Request) (int, any){groupPath: served("v2", "v1alpha1"), groupPath + "/v2": lists("stores")},
			want:    "the API server has version v2 of it, not v1alpha1: apply the CustomResourceDefinition of this release",
		},
		"its older version is there": {
			kind:    older,
			answers: map[string]func(*http.Request) (int, any){groupPath: served("v1alpha0"), groupPath + "/v1alpha0": lists("stores")},
			want:    "the API server has it in version v1alpha0",
		},
		"versions must not be read": {
			answers: map[string]func(*http.Request) (int, any){groupPath: failing(http.StatusForbidden, metav1.StatusReasonForbidden)},
			want:    "discovering versions of core.platform-mesh.io",
		},
		"a version cannot be read": {
			answers: map[string]func(*http.Request) (int, any){groupPath: served("v1alpha1"), groupPath + "/v1alpha1": ok("no JSON")},
			want:    "discovering core.platform-mesh.io/v1alpha1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := dial(t, test.answers)
			kind := test.kind
			if kind.Kind == "" {
				kind = kinds.Stores()
			}
			_, err := s.List(t.Context(), kind, "")
			if errors.Is(err, ErrNotServed) != test.absent || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestSwitchVersionUsesOlderVersion(t *testing.T) {
	kind := kinds.Stores()
	kind.FallbackVersion = "v1alpha0"
	const path = groupPath + "/v1alpha0/stores"
	s, w := dial(t, map[string]func(*http.Request) (int, any){
		groupPath: served("v1alpha0"), groupPath + "/v1alpha0": lists("stores"),
		path: ok(`{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"demo","uid":"u","resourceVersion":"1"}}]}`),
	})
	if _, err := s.List(t.Context(), kind, ""); err == nil {
		t.Fatal("the first list finds the newer version")
	}
	page, err := s.List(t.Context(), kind, "")
	if err != nil || page.Version != "9" || page.Objects[0].Version != "v1alpha0" {
		t.Errorf("got %+v, %v", page, err)
	}
	if names, err := s.ShortNames(t.Context(), kind); err != nil || !slices.Equal(names, []string{"st", "store"}) {
		t.Errorf("short names are %v, %v", names, err)
	}
	if last := w.asked[len(w.asked)-1].URL.Path; last != groupPath+"/v1alpha0" {
		t.Errorf("short names are asked for at %s", last)
	}
	delete(w.answers, path)
	w.answers[groupPath], w.answers[groupPath+"/v1alpha1"] = served("v1alpha1"), lists("stores")
	if _, err := s.List(t.Context(), kind, ""); err == nil {
		t.Fatal("the list finds the older version, which is gone")
	}
	if got := s.withServedVersion(kind).Version; got != "v1alpha1" {
		t.Errorf("%s is asked for, though only the newer version is there", got)
	}
}

func TestListReadsPages(t *testing.T) {
	s, w := dial(t, map[string]func(*http.Request) (int, any){storesPath: func(r *http.Request) (int, any) {
		if r.URL.Query().Get("continue") == "more" {
			return failure(http.StatusGone, metav1.StatusReasonExpired)
		}
		return http.StatusOK, `{"metadata":{"resourceVersion":"9","continue":"more"},"items":[{"metadata":{"name":"a","uid":"1","resourceVersion":"1"}},{"metadata":{"name":"b","uid":"2","resourceVersion":"2"}}]}`
	}})
	first, err := s.List(t.Context(), kinds.Stores(), "")
	if err != nil || len(first.Objects) != 2 || first.Next != "more" || first.Version != "9" {
		t.Fatalf("got %+v, %v", first, err)
	}
	if _, err := s.List(t.Context(), kinds.Stores(), first.Next); !errors.Is(err, ErrExpired) {
		t.Errorf("a page that is too old: %v", err)
	}
	if q := w.asked[0].URL.Query(); q.Get("limit") != "100" || q.Has("continue") || q.Has("resourceVersion") {
		t.Errorf("asked with %v", q)
	}
}

func TestRequestsAskForMetadataOnly(t *testing.T) {
	s, w := dial(t, map[string]func(*http.Request) (int, any){
		"/api/v1/secrets":                        ok(`{"metadata":{"resourceVersion":"9"},"items":[]}`),
		"/api/v1/namespaces/team-a/secrets/pass": ok(`{"metadata":{"name":"pass","namespace":"team-a","uid":"u","resourceVersion":"1"}}`),
		system:                                   ok(`{"metadata":{"uid":"e"}}`),
		storesPath:                               ok(`{"metadata":{"resourceVersion":"11"}}`),
	})
	if _, err := s.List(t.Context(), secrets(), ""); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Get(t.Context(), secrets(), "team-a", "pass"); err != nil || o.Epoch != "e" || o.Key.Namespace != "team-a" {
		t.Errorf("got %+v, %v", o, err)
	}
	if version, err := s.CurrentResourceVersion(t.Context(), kinds.Stores()); version != "11" || err != nil {
		t.Errorf("version %s, %v", version, err)
	}
	for _, r := range w.asked {
		if r.URL.Path != system && !strings.Contains(r.Header.Get("Accept"), ";as=PartialObjectMetadata") {
			t.Errorf("%s is asked for as %q", r.URL.Path, r.Header.Get("Accept"))
		}
	}
	if _, err := s.CurrentResourceVersion(t.Context(), withOther("pods")); !errors.Is(err, ErrNotServed) {
		t.Errorf("the version of what is not there: %v", err)
	}
}

func withOther(resource string) kinds.Kind {
	kind := secrets()
	kind.Resource = resource
	return kind
}

func TestListNamedFindsOneObjectAtMost(t *testing.T) {
	const demo = storesPath + "/demo"
	for name, test := range map[string]struct {
		name   string
		answer func(*http.Request) (int, any)
		want   error
		text   string
	}{
		"there":            {name: "demo", answer: ok(storeJSON)},
		"not there":        {name: "demo", answer: failing(http.StatusNotFound, metav1.StatusReasonNotFound), want: ErrNotFound, text: "reading Store demo"},
		"a path":           {name: "../secrets", want: ErrNotFound, text: `"../secrets" may not contain '/'`},
		"a dot":            {name: "..", want: ErrNotFound, text: "may not be '..'"},
		"must not be read": {name: "demo", answer: failing(http.StatusForbidden, metav1.StatusReasonForbidden), text: "the server says Forbidden"},
		"no object":        {name: "demo", answer: ok(`{"metadata":7}`), text: "decoding metadata of an object"},
		"no JSON":          {name: "demo", answer: ok(`{`), text: "reading Store demo"},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := dial(t, map[string]func(*http.Request) (int, any){system: ok(`{"metadata":{"uid":"e"}}`), demo: test.answer})
			o, err := s.Get(t.Context(), kinds.Stores(), "", test.name)
			switch {
			case test.text == "" && (err != nil || o.UID != "u1"):
				t.Errorf("got %+v, %v", o, err)
			case test.text != "" && (err == nil || !strings.Contains(err.Error(), test.text)):
				t.Errorf("got %v, want %q", err, test.text)
			case errors.Is(err, ErrNotFound) != (test.want != nil):
				t.Errorf("got %v, want %v", err, test.want)
			case strings.Contains(test.name, ".") && len(w.asked) > 0:
				t.Errorf("asked %s", w.paths())
			}
		})
	}
}

func TestClusterUIDDetectsOtherCluster(t *testing.T) {
	epoch := "e1"
	s, _ := dial(t, map[string]func(*http.Request) (int, any){system: func(*http.Request) (int, any) {
		if epoch == "" {
			return failure(http.StatusForbidden, metav1.StatusReasonForbidden)
		}
		return http.StatusOK, fmt.Sprintf(`{"metadata":{"uid":%q}}`, epoch)
	}})
	for range 2 {
		if got, err := s.ClusterUID(t.Context()); got != "e1" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	epoch = "e2"
	if _, err := s.ClusterUID(t.Context()); !errors.Is(err, ErrOtherCluster) || !strings.Contains(err.Error(), "e2, not e1") {
		t.Errorf("another cluster: %v", err)
	}
	if _, err := s.Get(t.Context(), kinds.Stores(), "", "demo"); !errors.Is(err, ErrOtherCluster) {
		t.Errorf("an object of another cluster: %v", err)
	}
	epoch = ""
	if _, err := s.ClusterUID(t.Context()); err == nil || errors.Is(err, ErrOtherCluster) || !strings.Contains(err.Error(), "reading the cluster's identity") {
		t.Errorf("a cluster that does not tell: %v", err)
	}
}

func TestWatchYieldsChangesAndEnd(t *testing.T) {
	frame := func(typ, object string) string { return fmt.Sprintf(`{"type":%q,"object":%s}`, typ, object) }
	store := func(version string) string {
		return strings.Replace(strings.ReplaceAll(storeJSON, "\n", ""), `"resourceVersion":"7"`, fmt.Sprintf(`"resourceVersion":%q`, version), 1)
	}
	status := func(code int, reason string) string {
		return fmt.Sprintf(`{"kind":"Status","code":%d,"reason":%q,"message":"old"}`, code, reason)
	}
	for name, test := range map[string]struct {
		answer func(*http.Request) (int, any)
		told   string
		want   error
		text   string
	}{
		"changes": {
			answer: ok(frame("ADDED", store("8")) + frame("MODIFIED", store("9")) + frame("DELETED", store("10"))), told: "8 9 10-deleted",
		},
		"bookmarks":               {answer: ok(frame("BOOKMARK", `{"metadata":{"resourceVersion":"12"}}`) + frame("ADDED", store("13"))), told: "12-bookmark 13"},
		"it ends":                 {answer: ok("")},
		"it is too old":           {answer: ok(frame("ADDED", store("8")) + frame("ERROR", status(410, "Expired"))), told: "8", want: ErrExpired},
		"it is too old at once":   {answer: failing(http.StatusGone, metav1.StatusReasonExpired), want: ErrExpired},
		"the kind is gone":        {answer: failing(http.StatusNotFound, metav1.StatusReasonNotFound), want: ErrExpired},
		"another error":           {answer: ok(frame("ERROR", status(500, "InternalError"))), text: "old"},
		"an error that is none":   {answer: ok(frame("ERROR", `7`)), text: "decoding an error of the API server"},
		"a bookmark that is none": {answer: ok(frame("BOOKMARK", `7`)), text: "decoding a bookmark"},
		"an object that is none":  {answer: ok(frame("ADDED", `7`)), text: "decoding an object"},
		"it is cut":               {answer: ok(frame("ADDED", store("8")) + `{"type":"ADD`), told: "8", text: "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := dial(t, map[string]func(*http.Request) (int, any){storesPath: test.answer})
			var told []string
			var last error
			for e, err := range s.Watch(t.Context(), kinds.Stores(), "7") {
				if last = err; err != nil {
					break
				}
				told = append(told, e.Version+map[bool]string{true: "-deleted"}[e.Deleted]+map[bool]string{true: "-bookmark"}[e.Bookmark])
			}
			if got := strings.Join(told, " "); got != test.told {
				t.Errorf("told %q, want %q", got, test.told)
			}
			switch {
			case test.want == nil && test.text == "" && last != nil, errors.Is(last, ErrExpired) != (test.want != nil):
				t.Errorf("it ended with %v, want %v", last, test.want)
			case test.text != "" && (last == nil || !strings.Contains(last.Error(), test.text)):
				t.Errorf("it ended with %v, want %q", last, test.text)
			}
			if q := w.asked[0].URL.Query(); q.Get("watch") != "true" || q.Get("resourceVersion") != "7" || q.Get("allowWatchBookmarks") != "true" || q.Get("timeoutSeconds") != "480" {
				t.Errorf("asked with %v", q)
			}
		})
	}
}

func TestWatchEndsWithCaller(t *testing.T) {
	s, _ := dial(t, map[string]func(*http.Request) (int, any){
		storesPath: ok(strings.Repeat(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}`, 5)),
	})
	n := 0
	for range s.Watch(t.Context(), kinds.Stores(), "1") {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d events for a reader of two", n)
	}
}

func TestNewRefusesInvalidAddress(t *testing.T) {
	if _, err := New(&rest.Config{Host: "://"}, "local"); err == nil || !strings.Contains(err.Error(), "creating client of the API server") {
		t.Errorf("got %v", err)
	}
}
