package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// receivedRequest is a request that the API server received.
type receivedRequest struct {
	method, path string
	query        map[string]string
	body         map[string]any
}

// field returns the value at a path of the body.
func (r receivedRequest) field(path ...string) any {
	var at any = r.body
	for _, name := range path {
		fields, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = fields[name]
	}
	return at
}

// fakeAPIServer is an API server whose answers a test defines. It also returns the UID of the cluster.
type fakeAPIServer struct {
	t        *testing.T
	mu       sync.Mutex
	requests []receivedRequest
	epochs   int
	answer   func(receivedRequest) (int, any)
}

const system = "/api/v1/namespaces/kube-system"

func (w *fakeAPIServer) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := receivedRequest{method: in.Method, path: in.URL.Path, query: map[string]string{}}
	for name, values := range in.URL.Query() {
		r.query[name] = values[0]
	}
	if data, _ := io.ReadAll(in.Body); len(data) > 0 {
		_ = json.Unmarshal(data, &r.body)
	}
	code, body := http.StatusOK, any(object("kube-system", "cluster-1", "1"))
	if r.path == system {
		w.epochs++
	} else {
		w.requests = append(w.requests, r)
		code, body = w.answer(r)
	}
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(code)
	if err := json.NewEncoder(out).Encode(body); err != nil {
		w.t.Error(err)
	}
}

// dial returns a client of an API server with these answers.
func dial(t *testing.T, answer func(receivedRequest) (int, any)) (*Client, *fakeAPIServer) {
	t.Helper()
	w := &fakeAPIServer{t: t, answer: answer}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	c, err := New(&rest.Config{Host: server.URL}, "local", "tester")
	if err != nil {
		t.Fatal(err)
	}
	return c, w
}

func object(name, uid, version string, finalizers ...string) map[string]any {
	metadata := map[string]any{"name": name, "uid": uid, "resourceVersion": version}
	if len(finalizers) > 0 {
		metadata["finalizers"] = finalizers
	}
	return map[string]any{"apiVersion": "core.platform-mesh.io/v1alpha1", "kind": "Store", "metadata": metadata}
}

func terminating(o map[string]any) map[string]any {
	o = maps.Clone(o)
	metadata := maps.Clone(o["metadata"].(map[string]any))
	metadata["deletionTimestamp"], o["metadata"] = "2026-01-01T00:00:00Z", metadata
	return o
}

func failure(code int, reason metav1.StatusReason) (int, any) {
	return code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: "the server says " + string(reason),
	}
}

// storeAsSeen returns the state of a Store as a service holds it.
func storeAsSeen(t *testing.T, o map[string]any) event.Change {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return event.Change{
		Key: event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "demo"}, Version: "v1alpha1", Kind: "Store",
		UID: "u1", ResourceVersion: "5", Object: data,
	}
}

func TestEditFinalizersRequiresNewestState(t *testing.T) {
	const ours = "example.org/ours"
	for name, test := range map[string]struct {
		seen map[string]any
		// answers are returned one after the other. The last one is repeated.
		answers []func() (int, any)
		remove  bool
		want    error
		// calls lists the methods and the requested finalizers.
		calls   string
		deleted bool
	}{
		"it is added": {
			seen: object("demo", "u1", "5"), answers: []func() (int, any){ok(object("demo", "u1", "6", ours))}, calls: "PATCH[example.org/ours]@5",
		},
		"it is there": {seen: object("demo", "u1", "5", ours), calls: ""},
		"others stay": {
			seen: object("demo", "u1", "5", "a", "b"), answers: []func() (int, any){ok(object("demo", "u1", "6", "a", "b", ours))},
			calls: "PATCH[a b example.org/ours]@5",
		},
		"an old state is read anew": {
			seen: object("demo", "u1", "5"), answers: []func() (int, any){conflict, ok(object("demo", "u1", "7", "a")), ok(object("demo", "u1", "8", "a", ours))},
			calls: "PATCH[example.org/ours]@5 GET PATCH[a example.org/ours]@7",
		},
		"somebody else has added it meanwhile": {
			seen: object("demo", "u1", "5"), answers: []func() (int, any){conflict, ok(object("demo", "u1", "7", ours))}, calls: "PATCH[example.org/ours]@5 GET",
		},
		"others are faster for ever": {
			seen: object("demo", "u1", "5"), answers: []func() (int, any){
				conflict, ok(object("demo", "u1", "7")), conflict, ok(object("demo", "u1", "8")), conflict, ok(object("demo", "u1", "9")),
				conflict, ok(object("demo", "u1", "10")), conflict,
			},
			want: ErrConflict,
		},
		"it is another object by now": {
			seen: object("demo", "u1", "5"), answers: []func() (int, any){conflict, ok(object("demo", "u2", "7"))}, want: ErrNotFound,
		},
		"it is gone":                     {seen: object("demo", "u1", "5"), answers: []func() (int, any){missing}, want: ErrNotFound},
		"one that goes takes none":       {seen: terminating(object("demo", "u1", "5", "a")), want: ErrConflict},
		"one that goes may have had it":  {seen: terminating(object("demo", "u1", "5", ours)), calls: ""},
		"nothing of the object is known": {answers: []func() (int, any){ok(object("demo", "u1", "6", ours))}, calls: "GET"},
		"it is removed": {
			remove: true, seen: object("demo", "u1", "5", "a", ours), answers: []func() (int, any){ok(object("demo", "u1", "6", "a"))}, calls: "PATCH[a]@5",
		},
		"the last one is removed of what goes": {
			remove: true, seen: terminating(object("demo", "u1", "5", ours)), answers: []func() (int, any){ok(terminating(object("demo", "u1", "6")))},
			calls: "PATCH[]@5", deleted: true,
		},
		"another holds what goes": {
			remove: true, seen: terminating(object("demo", "u1", "5", "a", ours)),
			answers: []func() (int, any){ok(terminating(object("demo", "u1", "6", "a")))}, calls: "PATCH[a]@5",
		},
		"what is gone needs no removal":     {remove: true, seen: object("demo", "u1", "5", ours), answers: []func() (int, any){missing}, deleted: true},
		"another of the name is left alone": {remove: true, answers: []func() (int, any){ok(object("demo", "u2", "5", ours))}, calls: "GET", deleted: true},
		"it is not there to be removed":     {remove: true, seen: object("demo", "u1", "5"), calls: ""},
		"the API server is away": {
			remove: true, seen: object("demo", "u1", "5", ours),
			answers: []func() (int, any){func() (int, any) { return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError) }}, want: errAway,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			c, w := dial(t, func(receivedRequest) (int, any) {
				n++
				return test.answers[min(n, len(test.answers))-1]()
			})
			state := storeAsSeen(t, test.seen)
			if test.seen == nil {
				state.Object = nil
			}
			edit := c.AddFinalizer
			if test.remove {
				edit = c.RemoveFinalizer
			}
			now, err := edit(t.Context(), kinds.Stores(), state, ours)
			switch {
			case errors.Is(test.want, errAway) && !fault.IsUnavailable(err), !errors.Is(test.want, errAway) && !errors.Is(err, test.want):
				t.Fatalf("got %v, want %v", err, test.want)
			case test.want == nil && now.Deleted != test.deleted:
				t.Errorf("deleted is %t, want %t", now.Deleted, test.deleted)
			}
			if n > 2*maxConflicts {
				t.Errorf("got %d requests", n)
			}
			var calls []string
			for _, r := range w.requests {
				call := r.method
				if r.method == http.MethodPatch {
					call += fmt.Sprintf("%v@%v", r.field("metadata", "finalizers"), r.field("metadata", "resourceVersion"))
				}
				calls = append(calls, call)
			}
			if got := strings.Join(calls, " "); test.calls != "" && got != test.calls || test.answers == nil && got != "" {
				t.Errorf("calls %q, want %q", got, test.calls)
			}
		})
	}
}

func TestAddFinalizersMakesOneCall(t *testing.T) {
	c, w := dial(t, func(receivedRequest) (int, any) { return ok(object("demo", "u1", "6", "a", "b/b", "c/c"))() })
	if _, err := c.AddFinalizers(t.Context(), kinds.Stores(), storeAsSeen(t, object("demo", "u1", "5", "a", "b/b")), "b/b", "c/c"); err != nil {
		t.Fatal(err)
	}
	if len(w.requests) != 1 || fmt.Sprint(w.requests[0].field("metadata", "finalizers")) != fmt.Sprint([]any{"a", "b/b", "c/c"}) {
		t.Errorf("got requests %+v", w.requests)
	}
}

var errAway = errors.New("away")

func ok(o map[string]any) func() (int, any) { return func() (int, any) { return http.StatusOK, o } }

func conflict() (int, any) { return failure(http.StatusConflict, metav1.StatusReasonConflict) }

func missing() (int, any) { return failure(http.StatusNotFound, metav1.StatusReasonNotFound) }

func TestApplySendsSeenVersion(t *testing.T) {
	c, w := dial(t, func(receivedRequest) (int, any) { return http.StatusOK, object("demo", "u1", "6") })
	now, err := c.Apply(t.Context(), kinds.Stores(), storeAsSeen(t, nil), map[string]any{"spec": map[string]any{"a": 1}})
	if err != nil || now.ResourceVersion != "6" || now.Epoch != "cluster-1" || now.ObservedAt.IsZero() {
		t.Fatalf("got %+v, %v", now, err)
	}
	fresh := event.Change{Key: storeAsSeen(t, nil).Key}
	if _, err := c.Apply(t.Context(), kinds.Stores(), fresh, map[string]any{}); err != nil {
		t.Fatal(err)
	}
	first, second := w.requests[0], w.requests[1]
	if first.path != "/apis/core.platform-mesh.io/v1alpha1/stores/demo" || first.method != http.MethodPatch {
		t.Errorf("got request %s %s", first.method, first.path)
	}
	if first.query["fieldManager"] != "tester" || first.query["force"] != "true" {
		t.Errorf("got request %v", first.query)
	}
	if first.field("metadata", "uid") != "u1" || first.field("metadata", "resourceVersion") != "5" || first.field("kind") != "Store" || first.field("spec", "a") != 1.0 {
		t.Errorf("got body %v", first.body)
	}
	if second.field("metadata", "uid") != nil || second.field("metadata", "resourceVersion") != nonexistentVersion {
		t.Errorf("creation: got body %v", second.body)
	}
	if w.epochs != 1 {
		t.Errorf("got %d reads of the cluster UID, want 1", w.epochs)
	}
	if _, err := c.Apply(t.Context(), kinds.Stores(), fresh, make(chan int)); err == nil || !strings.Contains(err.Error(), "encoding stores.core.platform-mesh.io/demo") {
		t.Errorf("value that cannot be encoded: got %v", err)
	}
}

func TestApplyStatusUsesSubresource(t *testing.T) {
	c, w := dial(t, func(r receivedRequest) (int, any) {
		if len(r.body) == 0 {
			return failure(http.StatusBadRequest, metav1.StatusReasonBadRequest)
		}
		return http.StatusOK, object("demo", "u1", "6")
	})
	if _, err := c.ApplyStatus(t.Context(), kinds.Stores(), storeAsSeen(t, nil), map[string]any{"storeId": "01"}); err != nil {
		t.Fatal(err)
	}
	r := w.requests[0]
	if r.path != "/apis/core.platform-mesh.io/v1alpha1/stores/demo/status" || r.field("metadata", "resourceVersion") != "5" || r.field("spec") != nil || r.field("status", "storeId") != "01" {
		t.Errorf("got request to %s with %v", r.path, r.body)
	}
	if _, err := c.ApplyStatus(t.Context(), kinds.Stores(), storeAsSeen(t, nil), make(chan int)); err == nil || len(w.requests) != 1 {
		t.Errorf("value that cannot be encoded: got %v", err)
	}
}

func TestDeleteHasPreconditions(t *testing.T) {
	for name, test := range map[string]struct {
		answer func() (int, any)
		want   error
	}{
		"deleted": {ok(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"}), nil},
		"gone":    {missing, nil},
		"changed": {conflict, ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			c, w := dial(t, func(receivedRequest) (int, any) { return test.answer() })
			if err := c.Delete(t.Context(), kinds.Stores(), storeAsSeen(t, nil)); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if r := w.requests[0]; r.field("preconditions", "uid") != "u1" || r.field("preconditions", "resourceVersion") != "5" {
				t.Errorf("got request %v", r.body)
			}
		})
	}
}

func TestListStopsAtErrorOrCaller(t *testing.T) {
	pages := func(r receivedRequest) (int, any) {
		items := []any{object("a"+r.query["continue"], "u1", "1"), object("b"+r.query["continue"], "u2", "2")}
		next := map[string]string{"": "1", "1": "2"}[r.query["continue"]]
		if r.query["continue"] == "2" {
			return failure(http.StatusGone, metav1.StatusReasonExpired)
		}
		return http.StatusOK, map[string]any{"kind": "StoreList", "apiVersion": "v1", "metadata": map[string]any{"continue": next}, "items": items}
	}
	c, w := dial(t, pages)
	var names []string
	last := event.DecodeEach(c.List(t.Context(), kinds.RoleBindings(), "team-a"), func(o *metav1.PartialObjectMetadata) { names = append(names, o.Name) })
	if !slices.Equal(names, []string{"a", "b", "a1", "b1"}) || last == nil || !strings.Contains(last.Error(), "listing rolebindings.rbac.authorization.k8s.io in team-a") {
		t.Errorf("read %v, %v", names, last)
	}
	if path := w.requests[0].path; path != "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings" {
		t.Errorf("got path %s", path)
	}
	before := len(w.requests)
	for range c.List(t.Context(), kinds.RoleBindings(), "team-a") {
		break
	}
	if len(w.requests) != before+1 {
		t.Errorf("got %d pages for one object", len(w.requests)-before)
	}
}

func TestFetchLargeObjectRefusesOtherCluster(t *testing.T) {
	c, w := dial(t, func(r receivedRequest) (int, any) {
		if strings.HasSuffix(r.path, "/gone") {
			return missing()
		}
		return http.StatusOK, object("demo", "u1", "6")
	})
	key := storeAsSeen(t, nil).Key
	if data, err := c.FetchLargeObject(t.Context(), key); err != nil || !strings.Contains(string(data), `"resourceVersion":"6"`) {
		t.Errorf("got %s, %v", data, err)
	}
	gone := key
	gone.Name = "gone"
	if data, err := c.FetchLargeObject(t.Context(), gone); err != nil || data != nil {
		t.Errorf("deleted object: got %s, %v", data, err)
	}
	asked := len(w.requests)
	other, unknown := key, key
	other.Cluster, unknown.Resource = "remote", "pods"
	for _, k := range []event.Key{other, unknown} {
		if _, err := c.FetchLargeObject(t.Context(), k); !fault.IsTerminal(err) || len(w.requests) != asked {
			t.Errorf("%v: %v", k, err)
		}
	}
}

func TestReadNewestReturnsDeletionForMissingObject(t *testing.T) {
	c, _ := dial(t, func(receivedRequest) (int, any) { return missing() })
	before := storeAsSeen(t, object("demo", "u1", "5"))
	now, err := c.ReadNewest(t.Context(), kinds.Stores(), before)
	if err != nil || !now.Deleted || now.UID != "u1" || string(now.Object) != string(before.Object) || now.ObservedAt.IsZero() {
		t.Errorf("got %+v, %v", now, err)
	}
	c, _ = dial(t, func(receivedRequest) (int, any) { return failure(http.StatusForbidden, metav1.StatusReasonForbidden) })
	if now, err := c.ReadNewest(t.Context(), kinds.Stores(), before); !errors.Is(err, ErrForbidden) || now.Deleted {
		t.Errorf("forbidden object: got %+v, %v", now, err)
	}
}

func TestRecordEventNamesObjectAndIsBounded(t *testing.T) {
	c, w := dial(t, func(receivedRequest) (int, any) {
		return http.StatusCreated, map[string]any{"kind": "Event", "apiVersion": "v1"}
	})
	long := storeAsSeen(t, nil)
	long.Key.Name = strings.Repeat("n", 253)
	if err := c.RecordEvent(t.Context(), long, condition.EventContent{Warning: true, Reason: "Refused", Message: strings.Repeat("m", 5000)}); err != nil {
		t.Fatal(err)
	}
	spaced := storeAsSeen(t, nil)
	spaced.Key.Namespace = "team-a"
	if err := c.RecordEvent(t.Context(), spaced, condition.EventContent{Reason: "Done", Message: "well"}); err != nil {
		t.Fatal(err)
	}
	first, second := w.requests[0], w.requests[1]
	message, _ := first.field("message").(string)
	if first.path != "/api/v1/namespaces/default/events" || first.field("type") != "Warning" || len(message) > maxMessage || first.field("involvedObject", "name") != long.Key.Name {
		t.Errorf("got request to %s with %v", first.path, first.body)
	}
	if name := fmt.Sprint(first.field("metadata", "generateName")); name != strings.Repeat("n", maxPrefix)+"." {
		t.Errorf("its name begins with %s", name)
	}
	if second.path != "/api/v1/namespaces/team-a/events" || second.field("type") != "Normal" || second.field("reportingComponent") != "tester" ||
		second.field("involvedObject", "apiVersion") != "core.platform-mesh.io/v1alpha1" || second.field("involvedObject", "uid") != "u1" {
		t.Errorf("got request to %s with %v", second.path, second.body)
	}
	for range 3 * eventBurst {
		if err := c.RecordEvent(t.Context(), spaced, condition.EventContent{Reason: "Again"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.requests); n > 2*eventBurst {
		t.Errorf("%d notes of a flood were sent", n)
	}
}

func TestDiscoverResourcesUsesGroupPath(t *testing.T) {
	list := metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "pods", Namespaced: true}}}
	for name, test := range map[string]struct {
		groupVersion, path string
		answer             func() (int, any)
		want               error
	}{
		"of a group":       {"apps/v1", "/apis/apps/v1", func() (int, any) { return http.StatusOK, list }, nil},
		"of none":          {"v1", "/api/v1", func() (int, any) { return http.StatusOK, list }, nil},
		"not served":       {"apps/v9", "/apis/apps/v9", func() (int, any) { return http.StatusNotFound, "404 page not found" }, ErrNotServed},
		"must not be read": {"apps/v1", "/apis/apps/v1", func() (int, any) { return failure(http.StatusForbidden, metav1.StatusReasonForbidden) }, ErrForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			c, w := dial(t, func(receivedRequest) (int, any) { return test.answer() })
			found, err := c.DiscoverResources(t.Context(), test.groupVersion)
			if !errors.Is(err, test.want) || (err == nil) != (len(found) == 1) || w.requests[0].path != test.path {
				t.Errorf("path %s: got %v, %v", w.requests[0].path, found, err)
			}
		})
	}
	c, _ := dial(t, func(receivedRequest) (int, any) { return http.StatusOK, []string{"no list"} })
	if _, err := c.DiscoverResources(t.Context(), "v1"); err == nil || !strings.Contains(err.Error(), "discovering v1") {
		t.Errorf("response without a list: got %v", err)
	}
}

func TestClusterUIDIsRetriedUntilKnown(t *testing.T) {
	down := true
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		code, body := http.StatusOK, any(object("kube-system", "cluster-1", "1"))
		if down {
			code, body = failure(http.StatusForbidden, metav1.StatusReasonForbidden)
		}
		out.WriteHeader(code)
		if err := json.NewEncoder(out).Encode(body); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	c, err := New(&rest.Config{Host: server.URL}, "local", "tester")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ClusterUID(t.Context()); !errors.Is(err, ErrForbidden) {
		t.Errorf("got %v", err)
	}
	down = false
	if epoch, err := c.ClusterUID(t.Context()); epoch != "cluster-1" || err != nil {
		t.Errorf("got %q, %v", epoch, err)
	}
	if _, err := New(&rest.Config{Host: "://"}, "local", "tester"); err == nil {
		t.Error("an address that is none was taken")
	}
}
