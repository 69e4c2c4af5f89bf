package checker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// kubeAPI is an API server that keeps every past state of its objects.
type kubeAPI struct {
	dynamic.Interface

	mu       sync.Mutex
	revision int
	states   map[schema.GroupVersionResource][]kindState
	watches  map[schema.GroupVersionResource][]*apiwatch.RaceFreeFakeWatcher
}

// kindState holds the objects of a kind from a time on.
type kindState struct {
	from    time.Time
	objects map[string]unstructured.Unstructured
}

func (k *kubeAPI) newest(gvr schema.GroupVersionResource) map[string]unstructured.Unstructured {
	if all := k.states[gvr]; len(all) > 0 {
		return all[len(all)-1].objects
	}
	return nil
}

// do executes an operation.
func (k *kubeAPI) do(op workload.Operation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.revision++
	o := identified(*op.Object)
	o.SetResourceVersion(fmt.Sprint(k.revision))
	objects, event := maps.Clone(k.newest(op.Resource)), apiwatch.Modified
	if objects == nil {
		objects = map[string]unstructured.Unstructured{}
	}
	if _, exists := objects[op.Key()]; op.Verb == workload.Delete && !exists {
		return
	}
	if objects[op.Key()] = o; op.Verb == workload.Delete {
		event = apiwatch.Deleted
		delete(objects, op.Key())
	}
	k.states[op.Resource] = append(k.states[op.Resource], kindState{time.Now(), objects})
	for _, w := range k.watches[op.Resource] {
		w.Action(event, o.DeepCopy())
	}
}

// kubeKind serves one kind.
type kubeKind struct {
	dynamic.NamespaceableResourceInterface

	api *kubeAPI
	gvr schema.GroupVersionResource
}

func (k *kubeAPI) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return kubeKind{api: k, gvr: gvr}
}

func (k kubeKind) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	k.api.mu.Lock()
	defer k.api.mu.Unlock()
	list := &unstructured.UnstructuredList{Items: slices.Collect(maps.Values(k.api.newest(k.gvr)))}
	list.SetResourceVersion(fmt.Sprint(k.api.revision))
	return list, nil
}

func (k kubeKind) Watch(ctx context.Context, _ metav1.ListOptions) (apiwatch.Interface, error) {
	k.api.mu.Lock()
	defer k.api.mu.Unlock()
	w := apiwatch.NewRaceFreeFake()
	context.AfterFunc(ctx, w.Stop)
	k.api.watches[k.gvr] = append(k.api.watches[k.gvr], w)
	return w, nil
}

// webhookBehind answers by the objects that the API server had some time ago, which may differ between kinds.
type webhookBehind struct {
	api *kubeAPI
	// behind is the age of all objects, bindingsBehind that of PolicyBindings.
	behind, bindingsBehind time.Duration
	// known holds the answers by the versions of the kinds.
	known map[string]*declaredIAMAccess
	// openFGA is the second source of answers; nil means that there is none.
	openFGA *webhookBehind
}

func (w *webhookBehind) ask(_ context.Context, _ string, q accessQuestion) (bool, error) {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	s, versions := &ObjectSnapshot{byKind: map[schema.GroupVersionResource][]unstructured.Unstructured{}}, map[string]int{}
	for gvr, states := range w.api.states {
		at := time.Now().Add(-w.behind)
		if gvr == workload.PolicyBindingResource() {
			at = time.Now().Add(-w.bindingsBehind)
		}
		n := 0
		for n < len(states) && !states[n].from.After(at) {
			n++
		}
		if versions[gvr.Resource] = n; n > 0 {
			s.byKind[gvr] = slices.Collect(maps.Values(states[n-1].objects))
		}
	}
	key := fmt.Sprint(versions)
	if w.known[key] == nil {
		w.known[key] = newDeclaredAccess(s)
	}
	return w.known[key].isAllowed(q), nil
}

// record runs a recorder of such a webhook during a workload, and then in a system at rest. It calls judge at the end.
func record(t *testing.T, webhook webhookBehind, operations int, judge func(*testing.T, *AnswerRecorder)) (reported []error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api := &kubeAPI{states: map[schema.GroupVersionResource][]kindState{}, watches: map[schema.GroupVersionResource][]*apiwatch.RaceFreeFakeWatcher{}}
		for _, o := range workload.InitialOperations() {
			api.do(o)
		}
		webhook.api, webhook.known = api, map[string]*declaredIAMAccess{}
		urls := func() []string { return []string{"webhook-0"} }
		sources := []AnswerSource{{name: "CheckAccess", urls: urls, ask: webhook.ask}}
		if webhook.openFGA != nil {
			webhook.openFGA.api, webhook.openFGA.known = api, map[string]*declaredIAMAccess{}
			openFGA := func() []string { return []string{"OpenFGA"} }
			sources = append(sources, AnswerSource{name: "Check", urls: openFGA, ask: webhook.openFGA.ask, sinceRest: true})
		}
		r := NewAnswerRecorder(api, sources, func(err error) { reported = append(reported, err) })
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { r.Run(ctx, 1) })
		w := workload.New(rand.New(rand.NewPCG(5, 5)))
		for range operations {
			api.do(w.NextOperation())
			sleepContext(ctx, 200*time.Millisecond)
		}
		sleepContext(ctx, announced+10*time.Second)
		judge(t, r)
		cancel()
		running.Wait()
	})
	return reported
}

func TestRecorderAcceptsAllowsWithinAnnouncedStaleness(t *testing.T) {
	for name, late := range map[string]time.Duration{"at once": 0, "a second before the bound": announced - time.Second} {
		reported := record(t, webhookBehind{behind: late, bindingsBehind: late}, 150, func(t *testing.T, r *AnswerRecorder) {
			if err := r.ReportWrongAllows(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if c := r.TakeCounts(); c.Allows < 500 || c.Mixed > 0 {
				t.Errorf("%s: got the counts %+v, want 500 allows at least, and none of mixed states", name, c)
			}
		})
		if len(reported) > 0 {
			t.Errorf("%s: got %v, want no report", name, errors.Join(reported...))
		}
	}
}

func TestRecorderReportsAllowsOlderThanAnnounced(t *testing.T) {
	late := announced + 2*time.Second
	reported := record(t, webhookBehind{behind: late, bindingsBehind: late}, 150, func(t *testing.T, r *AnswerRecorder) {
		if err := r.ReportWrongAllows(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(reported...); err == nil || !strings.Contains(err.Error(), "which follows from no objects of the last 18s; last allowed") {
		t.Errorf("got %v, want reports of such allows", err)
	}
}

func TestRecorderReportsAllowsOlderThanLastQuiescence(t *testing.T) {
	late := announced - time.Second
	reported := record(t, webhookBehind{behind: late, bindingsBehind: late}, 150, func(t *testing.T, r *AnswerRecorder) {
		r.NoteQuiescence(time.Now().Add(-announced - 10*time.Second))
		if err := r.ReportWrongAllows(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if len(reported) == 0 {
		t.Error("got no report, want some of allows from before the rest")
	}
}

func TestRecorderCountsAllowsOfMixedStates(t *testing.T) {
	reported := record(t, webhookBehind{bindingsBehind: announced - time.Second}, 900, func(t *testing.T, r *AnswerRecorder) {
		if err := r.ReportWrongAllows(t.Context()); err != nil {
			t.Error(err)
		}
		if c := r.TakeCounts(); c.Mixed == 0 || c.Mixed > c.Allows/2 {
			t.Errorf("got the counts %+v, want some allows of mixed states", c)
		}
	})
	if len(reported) > 0 {
		t.Errorf("got %v, want no report", errors.Join(reported...))
	}
}

func TestRecorderAcceptsAllowsOfOpenFGAOnlySinceLastQuiescence(t *testing.T) {
	const late = 2 * announced
	for name, test := range map[string]struct {
		rest     time.Duration // before the end
		accepted bool
	}{
		"the rest was before":      {rest: 2 * late, accepted: true},
		"the rest was just now":    {rest: announced},
		"there was no rest as yet": {accepted: true},
	} {
		reported := record(t, webhookBehind{openFGA: &webhookBehind{behind: late, bindingsBehind: late}}, 150, func(t *testing.T, r *AnswerRecorder) {
			if test.rest > 0 {
				r.NoteQuiescence(time.Now().Add(-test.rest))
			}
			if err := r.ReportWrongAllows(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if err := errors.Join(reported...); (err == nil) != test.accepted || err != nil && !strings.Contains(err.Error(), "Check at OpenFGA allows") {
			t.Errorf("%s: got %v, accepted should be %t", name, err, test.accepted)
		}
	}
}

func TestRecorderFindsEachPlantedAllowOf50Milliseconds(t *testing.T) {
	reported := record(t, webhookBehind{openFGA: &webhookBehind{}}, 150, func(t *testing.T, r *AnswerRecorder) {
		r.NoteQuiescence(time.Now())
		if err := r.ProveDetection(t.Context()); err != nil {
			t.Error(err)
		}
		if c := r.TakeCounts(); c.Planted != lies || c.Found != lies {
			t.Errorf("got %d of %d wrong allows, want %d of %d", c.Found, c.Planted, lies, lies)
		}
	})
	if len(reported) > 0 {
		t.Errorf("got %v, want no report of what was planted", errors.Join(reported...))
	}
}

func TestRecorderReportsAllowOf50Milliseconds(t *testing.T) {
	reported := record(t, webhookBehind{}, 150, func(t *testing.T, r *AnswerRecorder) {
		if _, ok := r.plantLie(r.sources[0]); !ok {
			t.Error("found no revoked question to plant a wrong allow for")
		}
		sleepContext(t.Context(), 2*lieFor)
		if err := r.ReportWrongAllows(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(reported...); err == nil || !strings.Contains(err.Error(), "CheckAccess at webhook-0 allows") {
		t.Errorf("got %v, want a report", err)
	}
}
