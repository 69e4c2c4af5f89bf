package checker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// watched is a monitor of a system at rest, with its reports.
type watched struct {
	*AccessMonitor
	world    *calmWorld
	reported []error
	// answering holds the URLs of webhooks.
	answering []string
}

func watch(t *testing.T, kube *rest.Config) *watched {
	t.Helper()
	w := &watched{world: atRest(t)}
	var err error
	if w.AccessMonitor, err = NewAccessMonitor(&OpenFGAClient{api: w.world.fga}, kube, func() []string { return w.answering }, func(err error) { w.reported = append(w.reported, err) }); err != nil {
		t.Fatal(err)
	}
	w.NoteQuiescence(w.world.snapshot())
	return w
}

func (w *watched) mustReport(t *testing.T, want string) {
	t.Helper()
	if err := errors.Join(w.reported...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("reported is %v, want %q", err, want)
	}
}

func TestUndeclaredTupleIsReported(t *testing.T) {
	revoked := Tuple{"doc:7", "viewer", "user:7"}
	for name, test := range map[string]struct {
		before func(*watched)
		want   string
	}{
		"all is declared":   {before: func(*watched) {}},
		"a tuple came back": {func(w *watched) { w.world.fga.tuples["id-0"] = append(w.world.fga.tuples["id-0"], revoked) }, "OpenFGA store store-0 (id-0) holds what was revoked and settled: tuples"},
		"a second store of the name has it": {
			func(w *watched) {
				w.world.fga.stores = append(w.world.fga.stores, &openfgav1.Store{Id: "id-1", Name: "store-0"})
				w.world.fga.tuples["id-1"] = []Tuple{revoked}
			}, "OpenFGA store store-0 (id-1) holds",
		},
		"somebody is about to declare it": {
			before: func(w *watched) {
				w.world.fga.tuples["id-0"] = append(w.world.fga.tuples["id-0"], revoked)
				o := store(text, tuple(revoked.Object, revoked.Relation, revoked.User))
				w.BeforeOperation(workload.Operation{Verb: workload.Apply, Resource: workload.StoreResource(), Object: &o})
			},
		},
		"that it is about to go makes it no more possible": {
			func(w *watched) {
				w.world.fga.tuples["id-0"] = append(w.world.fga.tuples["id-0"], revoked)
				o := store(text, tuple(revoked.Object, revoked.Relation, revoked.User))
				w.BeforeOperation(workload.Operation{Verb: workload.Delete, Resource: workload.StoreResource(), Object: &o})
			}, "holds what was revoked",
		},
		"no answer is no answer": {
			before: func(w *watched) {
				w.world.fga.tuples["id-0"] = append(w.world.fga.tuples["id-0"], revoked)
				w.world.fga.err = errors.New("away")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t, &rest.Config{Host: "http://127.0.0.1:1"})
			test.before(w)
			w.checkOpenFGA(t.Context())
			if test.want != "" {
				w.mustReport(t, test.want)
			} else if len(w.reported) > 0 {
				t.Errorf("reported is %v", w.reported)
			}
		})
	}
}

func TestUngrantedAllowIsReported(t *testing.T) {
	w := watch(t, &rest.Config{Host: "http://127.0.0.1:1"})
	for _, object := range workload.QuestionObjects() {
		for _, relation := range workload.QuestionRelations() {
			for _, user := range workload.QuestionUsers() {
				w.world.fga.yes = append(w.world.fga.yes, Tuple{object, relation, user})
			}
		}
	}
	w.askOpenFGA(t.Context(), "store-0", "id-0")
	w.mustReport(t, "OpenFGA store store-0 (id-0) answers yes to ")
	for _, err := range w.reported {
		if strings.Contains(err.Error(), "yes to doc:1#editor@user:1,") || strings.Contains(err.Error(), "yes to doc:1#viewer@user:1,") {
			t.Errorf("what is declared, or follows from that, is reported: %v", err)
		}
	}
}

func TestObservationOfEarlierEpochIsIgnored(t *testing.T) {
	w := watch(t, &rest.Config{Host: "http://127.0.0.1:1"})
	epoch := w.currentEpoch()
	never := func(*allowedSince) bool { return false }
	w.reportf(epoch, never, "seen")
	w.NoteQuiescence(w.world.snapshot())
	w.reportf(epoch, never, "seen before the last rest")
	w.reportf(w.currentEpoch(), func(*allowedSince) bool { return true }, "seen, and possible by now")
	if len(w.reported) != 1 || w.reported[0].Error() != "seen" {
		t.Errorf("reported is %v", w.reported)
	}
}

func TestMonitorCountsProbesSinceLastTake(t *testing.T) {
	w := watch(t, &rest.Config{Host: "http://127.0.0.1:1"})
	w.checkOpenFGA(t.Context())
	if n := w.TakeCheckCount(); n < 2 {
		t.Errorf("%d looks", n)
	}
	if n := w.TakeCheckCount(); n != 0 {
		t.Errorf("%d looks after they were taken", n)
	}
}

func TestMonitorDoesNotCountUnansweredProbe(t *testing.T) {
	w := watch(t, &rest.Config{Host: "http://127.0.0.1:1"})
	w.world.fga.err, w.answering = errors.New("away"), []string{"http://127.0.0.1:1"}
	w.checkOpenFGA(t.Context())
	w.askOpenFGA(t.Context(), "store-0", "id-0")
	w.askKubernetes(t.Context())
	w.askWebhooks(t.Context())
	if n := w.TakeCheckCount(); n != 0 {
		t.Errorf("got %d looks, want none", n)
	}
}

func TestMonitorCountsEachAnswerOfServer(t *testing.T) {
	cfg, asked := judge(t, false, http.StatusCreated)
	w := watch(t, cfg)
	w.askKubernetes(t.Context())
	if n := w.TakeCheckCount(); n == 0 || n != len(*asked) {
		t.Errorf("got %d looks, want one for each of %d reviews", n, len(*asked))
	}
	answered := 0
	w.answering = []string{answering(t, func(rw http.ResponseWriter, _ accessQuestion) {
		answered++
		_ = json.NewEncoder(rw).Encode(map[string]bool{"allowed": false})
	})}
	w.askWebhooks(t.Context())
	if n := w.TakeCheckCount(); n == 0 || n != answered {
		t.Errorf("got %d looks, want one for each of %d answers", n, answered)
	}
}

func TestMonitorReportsAnswerAsAllowAndTupleAsLeak(t *testing.T) {
	w := watch(t, &rest.Config{Host: "http://127.0.0.1:1"})
	w.reportf(w.currentEpoch(), func(*allowedSince) bool { return false }, "seen")
	w.world.fga.tuples["id-0"] = append(w.world.fga.tuples["id-0"], Tuple{"doc:7", "viewer", "user:7"})
	w.readTuples(t.Context(), "store-0", "id-0")
	var got []ViolationKind
	for _, err := range w.reported {
		got = append(got, AsViolation(err).Kind)
	}
	if want := []ViolationKind{Allow, Leak}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// judge starts an API server that allows every request, or none.
func judge(t *testing.T, allowed bool, status int) (*rest.Config, *[]authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	asked := &[]authorizationv1.SubjectAccessReviewSpec{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		*asked = append(*asked, review.Spec)
		review.Status.Allowed = allowed
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	cfg := &rest.Config{Host: server.URL, QPS: -1}
	cfg.ContentType = "application/json"
	return cfg, asked
}

func TestUngrantedAPIServerRightIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		allowed bool
		status  int
		want    string
	}{
		"it lets everybody do everything": {true, http.StatusCreated, " permits in team-"},
		"it lets nobody do anything":      {false, http.StatusCreated, ""},
		"it does not answer":              {true, http.StatusServiceUnavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, asked := judge(t, test.allowed, test.status)
			w := watch(t, cfg)
			w.askKubernetes(t.Context())
			if len(*asked) == 0 {
				t.Fatal("it was not asked")
			}
			for _, spec := range *asked {
				about := spec.ResourceAttributes
				if !slices.Contains(workload.PersonNames(), spec.User) || !slices.Contains(workload.RoleNames(), about.Name) || about.Resource != "configmaps" || about.Verb != "get" {
					t.Errorf("asked for %s, %+v", spec.User, about)
				}
			}
			if test.want != "" {
				w.mustReport(t, test.want)
			} else if len(w.reported) > 0 {
				t.Errorf("reported is %v", w.reported)
			}
		})
	}
}

func TestGrantedRightIsNotProbed(t *testing.T) {
	cfg, asked := judge(t, true, http.StatusCreated)
	w := watch(t, cfg)
	for _, namespace := range workload.NamespaceNames() {
		for _, role := range workload.RoleNames() {
			b := w.world.bind(namespace, "all-"+role, role, workload.PersonNames()...)
			w.BeforeOperation(workload.Operation{Verb: workload.Apply, Resource: workload.RoleBindingResource(), Object: b})
		}
	}
	if w.askKubernetes(t.Context()); len(*asked) > 0 || len(w.reported) > 0 {
		t.Errorf("asked %d times, reported %v", len(*asked), w.reported)
	}
}

func TestUngrantedWebhookAnswerIsReported(t *testing.T) {
	declares := newDeclaredAccess(related())
	for name, c := range map[string]struct {
		status int
		answer func(q accessQuestion) bool
		want   string
	}{
		"it is right":         {http.StatusOK, declares.isAllowed, ""},
		"it lets in anybody":  {http.StatusOK, func(accessQuestion) bool { return true }, "which was revoked and settled"},
		"it does not know":    {http.StatusServiceUnavailable, func(accessQuestion) bool { return true }, ""},
		"it lets nobody in":   {http.StatusOK, func(accessQuestion) bool { return false }, ""},
		"it grants too early": {http.StatusOK, func(q accessQuestion) bool { return q.Subject.User == "user-2" }, "answers yes to user-2"},
	} {
		t.Run(name, func(t *testing.T) {
			server := answering(t, func(w http.ResponseWriter, q accessQuestion) {
				w.WriteHeader(c.status)
				_ = json.NewEncoder(w).Encode(map[string]bool{"allowed": c.answer(q)})
			})
			w := watch(t, &rest.Config{Host: "http://127.0.0.1:1"})
			w.answering = []string{server}
			w.NoteQuiescence(related())
			for range 50 {
				w.askWebhooks(t.Context())
			}
			if c.want != "" {
				w.mustReport(t, c.want)
			} else if len(w.reported) > 0 {
				t.Errorf("reported is %v", w.reported)
			}
		})
	}
}

func TestGeneratedObjectsDoNotGrant(t *testing.T) {
	p := newAllowedSince()
	made := atRest(t).follow("team-0", "made", "source", "role-9", "eve")
	p.addState(workload.RoleBindingResource().Resource, *made)
	if p.mayHoldRole("team-0", "eve", "role-9") {
		t.Error("a RoleBinding that a service made is said to give a role")
	}
}

func TestChecksAreBatched(t *testing.T) {
	fga := &backend{yes: []Tuple{{"doc:3", "viewer", "user:1"}, {"doc:119", "viewer", "user:1"}}}
	var questions []Tuple
	for i := range 120 {
		questions = append(questions, Tuple{fmt.Sprintf("doc:%d", i), "viewer", "user:1"})
	}
	yes, err := (&OpenFGAClient{api: fga}).CheckAllowed(t.Context(), "id-0", questions)
	if err != nil || !slices.Equal(yes, fga.yes) || !slices.Equal(fga.batches, []int{50, 50, 20}) {
		t.Errorf("yes to %v in batches of %v, %v", yes, fga.batches, err)
	}
	fga.err = errors.New("away")
	if yes, err := (&OpenFGAClient{api: fga}).CheckAllowed(t.Context(), "id-0", questions); err == nil || len(yes) > 0 {
		t.Errorf("an OpenFGA that is away says yes to %v, %v", yes, err)
	}
}

func TestCountersReadBothServers(t *testing.T) {
	status := http.StatusOK
	kube := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintln(w, `apiserver_request_total{code="201",resource="rolebindings",subresource="",verb="POST"} 4`)
	}))
	defer kube.Close()
	fga := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `grpc_server_handled_total{grpc_code="OK",grpc_method="Write",grpc_service="x"} 5`)
		fmt.Fprintln(w, `grpc_server_handled_total{grpc_code="OK",grpc_method="Read",grpc_service="x"} 6`)
	}))
	c, err := NewWriteCounter(fga.URL, &rest.Config{Host: kube.URL})
	if err != nil {
		t.Fatal(err)
	}
	if w, err := c.ReadCounts(t.Context()); err != nil || len(w) != 2 || w["POST rolebindings 201"] != 4 || w["OpenFGA Write"] != 5 {
		t.Errorf("read %v, %v", w, err)
	}
	fga.Close()
	if _, err := c.ReadCounts(t.Context()); err == nil || !strings.Contains(err.Error(), "reading the metrics of OpenFGA") {
		t.Errorf("without OpenFGA: %v", err)
	}
	status = http.StatusInternalServerError
	if _, err := c.ReadCounts(t.Context()); err == nil || !strings.Contains(err.Error(), "reading the metrics of the API server") {
		t.Errorf("without the API server: %v", err)
	}
}

func TestOpenFGACounterCountsWritesOnly(t *testing.T) {
	for method, want := range map[string]bool{
		"Write": true, "WriteAuthorizationModel": true, "CreateStore": true, "UpdateStore": true, "DeleteStore": true,
		"Read": false, "Check": false, "ListStores": false, "ReadAuthorizationModels": false,
	} {
		if is := openFGAWriteName(map[string]string{"grpc_method": method}) != ""; is != want {
			t.Errorf("%s counts: %t", method, is)
		}
	}
}

func TestSnapshotHoldsStateOfObjects(t *testing.T) {
	w := atRest(t)
	before := w.snapshot().ResourceVersions()
	w.get(workload.StoreResource(), "store-0").SetResourceVersion("2")
	if now := w.snapshot().ResourceVersions(); now["stores//store-0"] != "2" || len(now) != len(before) || before["stores//store-0"] == "2" {
		t.Errorf("versions are %v, before %v", now, before)
	}
	data, err := json.Marshal(w.snapshot())
	var kept map[string][]unstructured.Unstructured
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil || len(kept["rolebindings"]) != 4 || kept["stores"][0].GetName() != "store-0" {
		t.Errorf("kept are %d kinds, %v", len(kept), err)
	}
}

// A wait ends with its context, so that a campaign can be stopped.
func TestWaitEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	(&watched{AccessMonitor: &AccessMonitor{}}).Run(ctx)
	sleepContext(ctx, every*1000)
}
