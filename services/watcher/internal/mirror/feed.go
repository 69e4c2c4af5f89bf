package mirror

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// feed keeps one kind.
type feed struct {
	*mirror
	kind kinds.Kind

	mu sync.Mutex
	// heads is what the stream holds of living objects.
	heads map[types.NamespacedName]head
	// waiting is what has still to be published.
	waiting map[types.NamespacedName]state
	// arrived numbers the states as they come.
	arrived uint64
	// round numbers the sweeps. An acknowledgement from an earlier one proves nothing:
	// the stream may have been wiped since.
	round int
	// highest is the highest sequence of this kind that is known.
	highest uint64
	// sweep is nil once its marker is written.
	sweep *sweep
	// stream is the incarnation that the last marker speaks of; empty before the first.
	stream string
	// due is when to sweep without a reason.
	due time.Time
	// restart ends what the feed does, to sweep again.
	restart context.CancelCauseFunc
	// suspect is an object whose message was not found.
	suspect types.NamespacedName
}

// head is a [publish.Head] without what is known anyhow.
type head struct {
	sequence         uint64
	version, meaning string
}

// state is the state of one object that waits for publication.
type state struct {
	source.Object
	// unseen means that the object is gone without having been seen: all that is known
	// is on the stream.
	unseen bool
	order  uint64
}

func newFeed(m *mirror, kind kinds.Kind) *feed {
	return &feed{
		mirror: m, kind: kind, restart: func(error) {},
		heads: map[types.NamespacedName]head{}, waiting: map[types.NamespacedName]state{},
	}
}

func (f *feed) key(name types.NamespacedName) event.Key {
	return event.Key{Cluster: f.Cluster, GroupResource: f.kind.GroupResource, Namespace: name.Namespace, Name: name.Name}
}

func nameOf(k event.Key) types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}

// observe takes what the API server told. It waits while too much is unpublished.
func (f *feed) observe(ctx context.Context, o source.Object) error {
	if f.known(o) {
		return nil
	}
	if err := f.backlog.Acquire(ctx, weight(o)); err != nil {
		return fmt.Errorf("waiting for the bus to take %s: %w", o.Key, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if old, ok := f.waiting[nameOf(o.Key)]; ok {
		f.backlog.Release(weight(old.Object))
	}
	f.enqueue(state{Object: o})
	return nil
}

// known reports whether the stream holds the meaning of o already.
func (f *feed) known(o source.Object) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := nameOf(o.Key)
	if f.sweep != nil {
		f.sweep.see(name)
	}
	_, waiting := f.waiting[name]
	return !waiting && !o.Deleted && f.heads[name].meaning == o.Meaning
}

func weight(o source.Object) int64 { return min(int64(len(o.Change.Object)), backlogBytes) }

// enqueue makes s the newest state of its object.
func (f *feed) enqueue(s state) {
	f.arrived++
	s.order = f.arrived
	f.waiting[nameOf(s.Key)] = s
	f.queue.Add(task{feed: f, name: nameOf(s.Key)})
	f.Metrics.waiting.WithLabelValues(f.label()).Set(float64(len(f.waiting)))
}

// do is one task: see [task].
func (f *feed) do(ctx context.Context, name types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if name.Name == "" {
		return f.mark(ctx)
	}
	f.mu.Lock()
	s, ok := f.waiting[name]
	on, round := f.heads[name], f.round
	f.mu.Unlock()
	if !ok {
		return nil
	}
	ack, err := f.publish(ctx, s, on)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if round != f.round {
		f.queue.Add(task{feed: f, name: name})
		return nil
	}
	f.record(ack)
	f.settle(name, s)
	return nil
}

// record remembers what the stream holds. The strings are copied: they would hold on
// to the message that they were cut from.
func (f *feed) record(h publish.Head) {
	f.highest = max(f.highest, h.Sequence)
	name := nameOf(h.Key)
	switch {
	case h.Sequence < f.heads[name].sequence && h.Sequence != 0:
	case h.Deleted || h.Sequence == 0:
		delete(f.heads, name)
	default:
		name = types.NamespacedName{Namespace: strings.Clone(name.Namespace), Name: strings.Clone(name.Name)}
		f.heads[name] = head{sequence: h.Sequence, version: strings.Clone(h.Version), meaning: strings.Clone(h.Meaning)}
	}
	f.Metrics.objects.WithLabelValues(f.label()).Set(float64(len(f.heads)))
}

// settle takes s off the list, unless a newer state came meanwhile.
func (f *feed) settle(name types.NamespacedName, s state) {
	if newest := f.waiting[name]; newest.order == s.order {
		f.backlog.Release(weight(newest.Object))
		delete(f.waiting, name)
		f.Metrics.waiting.WithLabelValues(f.label()).Set(float64(len(f.waiting)))
	}
	if f.sweep != nil && f.sweep.published(name, s.order) {
		f.queue.Add(task{feed: f})
	}
}

func (f *feed) label() string { return f.kind.GroupResource.String() }
