package reflector

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/barrier"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// newAcceptedWriter returns a writer whose first barrier was accepted.
func newAcceptedWriter() *barrier.Sequencer {
	w := barrier.NewSequencer(1, nil, 0)
	w.StampNext(&eventv1.Barrier{})
	w.RecordAccepted(1)
	return w
}

// barrierLag returns how long the stream may lack changes by the next barrier, or -1 without a barrier.
func barrierLag(r *reflector) time.Duration {
	h, err := r.buildNextBarrier(time.Now())
	if err != nil {
		return -1
	}
	return h.GetBehind().AsDuration()
}

func TestBarrierReportsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reflector{cfg: Config{Halt: &inMemoryHalt{}}, targets: &targetKinds{}, barriers: newAcceptedWriter()}
		k := newKindReflector(r, kinds.Stores(), nil)
		r.kinds = []*kindReflector{k}
		wait := func(d time.Duration) { <-time.After(d) }
		want := func(when string, d time.Duration) {
			t.Helper()
			if got := barrierLag(r); got != d {
				t.Errorf("%s: %s behind, want %s", when, got, d)
			}
		}
		want("before the first snapshot", -1)
		end := k.markWatchOpen()
		want("before the marker of the snapshot", -1)
		k.stream = "one"
		wait(time.Hour)
		want("while it is watched", 0)
		k.waiting[types.NamespacedName{Name: "a"}] = pendingState{Object: source.Object{Change: event.Change{ObservedAt: time.Now()}}}
		wait(3 * time.Second)
		want("while a change waits", 3*time.Second)
		clear(k.waiting)
		end()
		wait(4 * time.Second)
		want("while it is not watched", 4*time.Second)
		refused := k.markWatchOpen()
		wait(opening / 2)
		want("while a watch may yet be refused", 5*time.Second)
		refused()
		wait(time.Second)
		want("when it was", 6*time.Second)
		k.markWatchOpen()
		wait(opening)
		want("while it is watched again", 0)
	})
}

// A watch that is silent alone counts as current only as long as its next bookmark may still come.
func TestBarrierDoesNotCoverSilentWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reflector{cfg: Config{Halt: &inMemoryHalt{}}, targets: &targetKinds{}, barriers: newAcceptedWriter()}
		silent, other := newKindReflector(r, kinds.Stores(), nil), newKindReflector(r, kinds.AuthorizationModels(), nil)
		r.kinds = []*kindReflector{silent, other}
		for _, k := range r.kinds {
			k.stream = "one"
			k.markWatchOpen()
		}
		<-time.After(time.Hour)
		if got := barrierLag(r); got != 0 {
			t.Errorf("%s behind without bookmarks, want 0", got)
		}
		silent.bookmarked, silent.heard, other.bookmarked = true, time.Now(), true
		for range 3 {
			<-time.After(maxSilence / 2)
			other.heard = time.Now()
		}
		if got := barrierLag(r); got != 3*maxSilence/2 {
			t.Errorf("%s behind, want %s", got, 3*maxSilence/2)
		}
		silent.heard = time.Now()
		if got := barrierLag(r); got != 0 {
			t.Errorf("%s behind when it is heard again, want 0", got)
		}
	})
}

// A leader that may not read is told so by an API server that answers.
func TestForbiddenReadCountsAsAnswer(t *testing.T) {
	namespaces := schema.GroupResource{Resource: "namespaces"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"an object":            {nil, true},
		"a refusal":            {fmt.Errorf("reading: %w", apierrors.NewForbidden(namespaces, "kube-system", errDown)), true},
		"too many requests":    {apierrors.NewTooManyRequests("later", 1), true},
		"an overloaded server": {apierrors.NewInternalError(errDown), false},
		"no connection":        {errDown, false},
		"another cluster":      {source.ErrOtherCluster, false},
	} {
		if got := isAPIServerResponse(test.err); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestBarriersStopWithoutAPIServerAnswers(t *testing.T) {
	b := newTestNATS(t)
	c := newFakeSource()
	b.run(b.config(c))
	last := func() uint64 {
		msg, err := b.stream(topology.Changes).GetLastMsgForSubject(t.Context(), topology.BarrierSubject("local"))
		if err != nil {
			return 0
		}
		return msg.Sequence
	}
	more := func() error {
		before := last()
		<-time.After(200 * time.Millisecond) // Ten intervals.
		if last() == before {
			return errors.New("there is no further barrier")
		}
		return nil
	}
	eventually(t, more)
	c.set(func(c *fakeSource) { c.unread = true })
	eventually(t, func() error {
		if more() == nil {
			return errors.New("barriers go on")
		}
		return nil
	})
	c.set(func(c *fakeSource) { c.unread = false })
	eventually(t, more)
}

func TestBarriersContinueWhileHealthy(t *testing.T) {
	b := newTestNATS(t)
	c := newFakeSource()
	c.apply("a", "1", "")
	b.run(b.config(c))
	var first *eventv1.Barrier
	eventually(t, func() error {
		msg, err := b.stream(topology.Changes).GetLastMsgForSubject(t.Context(), topology.BarrierSubject("local"))
		if err != nil {
			return err
		}
		var h eventv1.Barrier
		if err := proto.Unmarshal(msg.Data, &h); err != nil {
			return err
		}
		if first == nil {
			first = &h
		}
		if !h.GetWrittenAt().AsTime().After(first.GetWrittenAt().AsTime()) {
			return errors.New("there is one barrier")
		}
		if version := h.GetResourceVersions()[kinds.Stores().GroupResource.String()]; version == "" || h.GetBehind().AsDuration() != 0 {
			return fmt.Errorf("it says %v", &h)
		}
		return nil
	})
}

// publishBarrier publishes a barrier whatever the stream holds.
func (b *testNATS) publishBarrier(o *eventv1.Barrier) {
	b.t.Helper()
	data, err := proto.Marshal(o)
	if err == nil {
		_, err = b.js.Publish(b.t.Context(), topology.BarrierSubject("local"), data)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestLeaderEndsTermWhenLaterLeaderWritesBarriers(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	cfg := b.config(c)
	cfg.Term = 1
	ended := make(chan error, 1)
	go func() { ended <- Run(t.Context(), cfg) }()
	b.settles()
	b.terms.Store(2)
	b.publishBarrier(&eventv1.Barrier{Cluster: "local", Term: 2, Run: "later", Number: 1})
	if err := <-ended; !errors.Is(err, ErrDeposed) {
		t.Errorf("got %v, want ErrDeposed", err)
	}
	if last, _, err := b.p.LastBarrier(t.Context(), "local"); err != nil || last.GetRun() != "later" {
		t.Errorf("the newest barrier is %v, %v; want that of the later leader", last, err)
	}
}

func TestLeaderComparesAllObjectsAfterBarrierOfAnotherClient(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("a", "v1", "")
	cfg := b.config(c)
	b.run(cfg)
	b.settles()
	before, _, err := b.p.LastBarrier(t.Context(), "local")
	if err != nil {
		t.Fatal(err)
	}
	b.publishBarrier(&eventv1.Barrier{Cluster: "local", Term: math.MaxUint64, Run: "forged", Number: 1})
	b.settles()
	after, _, err := b.p.LastBarrier(t.Context(), "local")
	if err != nil || after.GetRun() == before.GetRun() || after.GetRun() == "forged" {
		t.Errorf("the run is %q, %v; before it was %q", after.GetRun(), err, before.GetRun())
	}
	if got := value(t, cfg.Metrics.doubts); got != 1 {
		t.Errorf("%v doubts counted, want 1", got)
	}
	if terms := b.terms.Load(); terms != 1 {
		t.Errorf("%d terms began, want 1", terms)
	}
	b.corrects(cfg, causeBarrier, 1)
	b.becomes(c)
}

// Another client may write a barrier behind each one of the leader, so that the stream accepts none.
func TestHaltIsAnnouncedWithoutAcceptedBarrier(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	cfg := b.config(c)
	b.run(cfg)
	b.settles()
	eventually(t, func() error {
		b.publishBarrier(&eventv1.Barrier{Cluster: "local"})
		if cfg.Halt.Reason() == "" {
			return errors.New("forged barriers do not halt services")
		}
		return nil
	})
	c.set(func(c *fakeSource) { c.down = true }) // No sweep ends, so no barrier proves anything.
	b.publishBarrier(&eventv1.Barrier{Cluster: "local"})
	eventually(t, func() error {
		last, _, err := b.p.LastBarrier(t.Context(), "local")
		if err == nil && last.GetHalted() == "" {
			err = errors.New("the last barrier announces no halt")
		}
		return err
	})
}
