package reflector

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// sourceWithTargetKinds is an API server with ProtectedResources and the kinds that they register.
type sourceWithTargetKinds struct {
	*fakeSource

	mu     sync.Mutex
	served map[event.GroupResource]*fakeSource
	// held blocks lists of these kinds until it is closed. Nil does not block.
	held chan struct{}
}

func newSourceWithTargetKinds() *sourceWithTargetKinds {
	r := &sourceWithTargetKinds{fakeSource: newFakeSource(), served: map[event.GroupResource]*fakeSource{}}
	resources := kinds.ProtectedResources()
	r.of = &resources
	return r
}

func trees(plural string) event.GroupResource {
	return event.GroupResource{Group: "a.example", Resource: plural, Target: true}
}

// serve serves a kind under a name.
func (r *sourceWithTargetKinds) serve(plural, kind string) *fakeSource {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, of := newFakeSource(), kinds.TargetKind(trees(plural), "v1", kind)
	c.of = &of
	r.served[trees(plural)] = c
	return c
}

// register adds a ProtectedResource that registers a kind. made is its creation time in hours.
func (r *sourceWithTargetKinds) register(plural, kind string, made int) {
	r.put(plural, plural+kind, fmt.Appendf(nil, `{"metadata":{"name":%q,"creationTimestamp":%q},"spec":{"serviceRef":{"name":"a.example"},"kind":%q,"plural":%q}}`,
		plural, time.Unix(0, 0).UTC().Add(time.Duration(made)*time.Hour).Format(time.RFC3339), kind, plural))
}

func (r *sourceWithTargetKinds) at(of kinds.Kind) *fakeSource {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of.Target {
		return r.served[of.GroupResource]
	}
	return r.fakeSource
}

func (r *sourceWithTargetKinds) FindServedKind(_ context.Context, of event.GroupResource) (kinds.Kind, error) {
	if c := r.at(kinds.Kind{GroupResource: of}); c != nil {
		return c.kind(), nil
	}
	return kinds.Kind{}, source.ErrNotServed
}

func (r *sourceWithTargetKinds) CurrentResourceVersion(ctx context.Context, of kinds.Kind) (string, error) {
	return r.at(of).CurrentResourceVersion(ctx, of)
}

func (r *sourceWithTargetKinds) List(ctx context.Context, of kinds.Kind, token string) (source.Page, error) {
	r.mu.Lock()
	held := r.held
	r.mu.Unlock()
	if of.Target && held != nil {
		select {
		case <-held:
		case <-ctx.Done():
		}
	}
	return r.at(of).List(ctx, of, token)
}

func (r *sourceWithTargetKinds) Watch(ctx context.Context, of kinds.Kind, version string) iter.Seq2[source.Event, error] {
	return r.at(of).Watch(ctx, of, version)
}

// hold blocks lists until the returned function is called.
func (r *sourceWithTargetKinds) hold() (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = make(chan struct{})
	return sync.OnceFunc(func() { close(r.held) })
}

func laneOf(t *testing.T) *publishQueue {
	t.Helper()
	on := newPublishQueue()
	t.Cleanup(on.shutDown)
	return on
}

// follow runs a reflector of a realm.
func (b *testNATS) follow(r *sourceWithTargetKinds) (stop func()) {
	b.t.Helper()
	cfg := b.config(r)
	cfg.Kinds = []kinds.Kind{kinds.ProtectedResources()}
	return b.run(cfg)
}

// tells waits until the marker of a kind states that it is observed, or the problem.
func (b *testNATS) tells(plural, problem string) {
	b.t.Helper()
	eventually(b.t, func() error {
		m, err := b.p.LastMarker(b.t.Context(), "local", trees(plural))
		if err == nil && (m.GetServed() != (problem == "") || !strings.Contains(m.GetProblem(), problem) || problem == "" && m.GetProblem() != "") {
			err = fmt.Errorf("it tells %v, want %q", m, problem)
		}
		return err
	})
}

// beat waits for a barrier that was written after a time.
func (b *testNATS) beat(after time.Time) {
	b.t.Helper()
	eventually(b.t, func() error {
		h, _, err := b.p.LastBarrier(b.t.Context(), "local")
		if err == nil && !h.GetWrittenAt().AsTime().After(after) {
			err = fmt.Errorf("the last is %v", h)
		}
		return err
	})
}

// A barrier states that the stream follows the API server. It must not come while the stream still holds objects from
// a time before the present watch of their kind.
func TestBarrierWaitsForUncomparedTargets(t *testing.T) {
	b, r := newTestNATS(t), newSourceWithTargetKinds()
	oaks := r.serve("oaks", "Oak")
	oaks.apply("one", "v1", "")
	r.register("oaks", "Oak", 0)
	stop := b.follow(r)
	b.tells("oaks", "")
	b.beat(time.Time{})
	stop()
	oaks.remove("one")
	release := r.hold()
	defer release()
	h, _, err := b.p.LastBarrier(t.Context(), "local")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if age := time.Since(h.GetWrittenAt().AsTime()); age < 2*patience*b.config(r).CheckInterval {
			return fmt.Errorf("nobody has followed it for %s only", age)
		}
		return nil
	})
	again := time.Now()
	b.follow(r)
	b.beat(again)
	if m, err := b.p.LastMarker(t.Context(), "local", trees("oaks")); err != nil || m.GetProblem() == "" {
		t.Errorf("there is a barrier, and it tells %v, %v", m, err)
	}
	release()
	b.tells("oaks", "")
	if last, err := b.p.LastChange(t.Context(), oaks.key("one")); err != nil || !last.Change.Deleted {
		t.Errorf("what is gone is %+v, %v", last, err)
	}
}

// No barrier comes either before the marker states that the objects are not observed.
func TestBarrierWaitsForProblemMarker(t *testing.T) {
	cfg := Config{CheckInterval: time.Second, Metrics: NewMetrics(prometheus.NewRegistry()), Halt: &inMemoryHalt{}}
	r := &reflector{cfg: cfg, barriers: newAcceptedWriter()}
	k := newKindReflector(r, kinds.Stores(), nil)
	k.stream = "one"
	defer k.markWatchOpen()()
	one := &targetKind{kind: trees("oaks"), sure: time.Now().Add(-patience * time.Second), following: t.Context()}
	r.kinds, r.targets = []*kindReflector{k}, &targetKinds{reflector: r, all: map[event.GroupResource]*targetKind{one.kind: one}}
	one.targets = r.targets
	for name, c := range map[string]struct {
		told    markerScope
		problem string
		beats   bool
	}{
		"it is observed, by what is old": {told: markerScope{"one", "epoch"}},
		"it is not":                      {told: markerScope{"one", "epoch"}, problem: "no right", beats: true},
		"nothing was told of it yet":     {beats: true},
	} {
		one.told, one.problem = c.told, c.problem
		if _, err := r.buildNextBarrier(time.Now()); (err == nil) != c.beats {
			t.Errorf("%s: the cause of no barrier is %v", name, err)
		}
	}
	one.told, one.problem, one.sure = markerScope{"one", "epoch"}, "", time.Now()
	if _, err := r.buildNextBarrier(time.Now()); err != nil {
		t.Errorf("there is none though the bus is up to date: %v", err)
	}
}

// A kind whose objects take long to read must not delay other kinds. It counts as not observed until then.
func TestSlowKindIsUnobservedUntilListed(t *testing.T) {
	b, r := newTestNATS(t), newSourceWithTargetKinds()
	r.serve("oaks", "Oak")
	release := r.hold()
	defer release()
	r.register("oaks", "Oak", 0)
	b.follow(r)
	b.tells("oaks", "being read")
	b.beat(time.Time{})
	release()
	b.tells("oaks", "")
}

// Otherwise roles on a kind would apply to objects of another.
func TestTargetKindRequiresMatchingKindName(t *testing.T) {
	b, r := newTestNATS(t), newSourceWithTargetKinds()
	r.serve("oaks", "Oak")
	elms := r.serve("elms", "Elm")
	r.register("oaks", "Elm", 0)
	r.register("elms", "Oak", 0)
	b.follow(r)
	b.tells("oaks", "calls the kind Oak: is spec.kind right?")
	b.tells("elms", "calls the kind Elm")
	r.register("elms", "Elm", 0)
	b.tells("elms", "")
	elms.apply("one", "v1", "")
	eventually(t, func() error { _, err := b.p.LastChange(t.Context(), elms.key("one")); return err })
	r.register("elms", "Oak", 0)
	b.tells("elms", "calls the kind Elm")
}

// Very many registrations must not displace earlier ones.
func TestFirstRegisteredKindsAreFollowed(t *testing.T) {
	b, r := newTestNATS(t), newSourceWithTargetKinds()
	r.serve("oaks", "Oak")
	r.serve("elms", "Elm")
	for i := range maxTargets - 1 {
		r.register(fmt.Sprint("nothings-", i), "Nothing", 1)
	}
	r.register("oaks", "Oak", 2)
	r.register("elms", "Elm", 0)
	stop := b.follow(r)
	b.tells("oaks", "registered before this one")
	b.tells("elms", "")
	r.remove("nothings-7")
	b.tells("oaks", "")
	r.register("nothings-7", "Nothing", 3)
	stop()
	b.follow(r)
	b.tells("oaks", "")
	r.register("nothings-7", "Nothing", 1) // It was created before the others.
	b.tells("oaks", "registered before this one")
}

// States of a kind in one version, waiting for publication, do not apply to it in another.
func TestVersionSwitchDropsPendingStates(t *testing.T) {
	b, r := newTestNATS(t), newSourceWithTargetKinds()
	of := &targetKinds{reflector: &reflector{cfg: b.config(r)}, lane: laneOf(t)}
	one := &targetKind{targets: of, kind: trees("oaks")}
	k := newKindReflector(of.reflector, kinds.TargetKind(one.kind, "v1", "Oak"), of.lane)
	one.replaceReflector(k)
	oaks := r.serve("oaks", "Oak")
	oaks.put("one", "v1", []byte(`{}`))
	o := oaks.objects["one"]
	if err := k.enqueueObservedState(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	one.replaceReflector(newKindReflector(of.reflector, kinds.TargetKind(one.kind, "v2", "Oak"), of.lane))
	if err := k.runPublishTask(t.Context(), namespacedNameOf(o.Key)); err != nil {
		t.Error(err)
	}
	if last, err := b.p.LastChange(t.Context(), o.Key); !errors.Is(err, publish.ErrNoMessage) {
		t.Errorf("it is %+v, %v", last, err)
	}
	if !of.lane.backlog.TryAcquire(backlogBytes) {
		t.Error("room is kept for it")
	}
}

// Removals must not wait behind new objects, however many there are.
func TestRemovalsOvertakeNewObjects(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	k := newKindReflector(&reflector{cfg: b.config(c)}, kinds.Stores(), laneOf(t))
	c.apply("old", "v1", "")
	k.recordPublishedEntry(publish.Entry{Key: c.key("old"), Sequence: 1, UID: c.uid("old"), Version: "1"})
	for i := range 100 {
		c.apply(fmt.Sprint("new-", i), "v1", "")
	}
	c.remove("old")
	for _, e := range c.history[1:] {
		if err := k.enqueueObservedState(t.Context(), e.Object); err != nil {
			t.Fatal(err)
		}
	}
	if fresh, changed := k.lane.fresh.Len(), k.lane.changed.Len(); fresh != 100 || changed != 1 {
		t.Errorf("%d are new, %d are told otherwise", fresh, changed)
	}
}

// Each change of the text would reconcile everything that depends on the kind.
func TestProblemTextIsStable(t *testing.T) {
	oaks := schema.GroupResource{Group: "a.example", Resource: "oaks"}
	dial := func(port string) error {
		return &url.Error{Op: "Get", URL: "https://127.0.0.1:6443/apis", Err: &net.OpError{Op: "read", Err: errors.New("read 127.0.0.1:" + port + ": connection reset")}}
	}
	for name, errs := range map[string][2]error{
		"it cannot be reached":  {dial("4001"), dial("4002")},
		"it has much to do":     {apierrors.NewTooManyRequests("try in 1 s", 1), apierrors.NewTooManyRequests("try in 7 s", 7)},
		"its versions go back":  {fmt.Errorf("it is at 7, known is 8: %w", errRewound), fmt.Errorf("it is at 8, known is 9: %w", errRewound)},
		"the watcher may not":   {apierrors.NewForbidden(oaks, "a", errors.New("one")), apierrors.NewForbidden(oaks, "b", errors.New("two"))},
		"it is not served":      {fmt.Errorf("looking: %w", source.ErrNotServed), source.ErrNotServed},
		"it cannot be followed": {source.ErrCannotBeFollowed, source.ErrCannotBeFollowed},
	} {
		if a, b := describeFollowProblem(errs[0]), describeFollowProblem(errs[1]); a != b || a == "" {
			t.Errorf("%s: %q, %q", name, a, b)
		}
	}
}

// A kind that is registered before it is served causes no warning. Every other kind that is not followed does.
func TestUnservedKindDoesNotCauseWarning(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "oaks"}, "a", errors.New("one"))
	for _, err := range []error{
		forbidden, fmt.Errorf("%w: %w", source.ErrNotServed, forbidden), source.ErrCannotBeFollowed, errTooMany, errMisnamed, errRewound, errors.New("another"),
	} {
		if followErrorLevel(err) != slog.LevelWarn {
			t.Errorf("nobody is warned that %s", err)
		}
	}
	if err := fmt.Errorf("looking: %w", source.ErrNotServed); followErrorLevel(err) != slog.LevelInfo {
		t.Errorf("somebody is warned that %s", err)
	}
}

// A marker counts the objects on the stream up to its sequence, including those created after the list.
func TestMarkerCountsObjectsAfterList(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	k := newKindReflector(&reflector{cfg: b.config(c)}, kinds.Stores(), laneOf(t))
	k.sweep = &relistProgress{marker: &eventv1.SnapshotMarker{Cluster: "local", Group: k.kind.Group, Resource: k.kind.Resource, Count: 1}}
	for i, name := range []string{"listed", "later"} {
		k.recordPublishedEntry(publish.Entry{Key: c.key(name), Sequence: uint64(i + 1), UID: name})
	}
	if err := k.publishDueMarker(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m, err := b.marker(); err != nil || m.GetCount() != 2 || m.GetLastSequence() != 2 {
		t.Errorf("it tells %v, %v", m, err)
	}
}
