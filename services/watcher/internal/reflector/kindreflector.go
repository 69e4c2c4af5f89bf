package reflector

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// kindReflector keeps the objects of one kind.
type kindReflector struct {
	cfg       Config
	reflector *reflector
	lane      *lane
	kind      kinds.Kind
	// marked is told of each marker that is written.
	marked func(*eventv1.SnapshotMarker)
	// right says of a marker of the present stream whether it is the one that is to be there.
	right func(*eventv1.SnapshotMarker) bool

	mu sync.Mutex
	// epoch is what the kind is swept and watched in.
	epoch string
	// seen is the newest version that the API server told of in that epoch, ahead the newest that
	// the stream was found to hold although nobody saw it there.
	seen, ahead string
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
	// restart ends what is under way, to sweep again.
	restart context.CancelCauseFunc
	// newest is the message that came last, suspect one that was not found; turn counts the looks.
	newest, suspect message
	turn            int
	// opened is when the watch under way began, closed when the last one that was open ended.
	opened, closed time.Time
	// heard is when the API server told something last.
	heard time.Time
	// bookmarked means that the API server sends bookmarks of the kind: not every aggregated one does.
	bookmarked bool
}

// head is a [publish.Head] without what is known anyhow.
type head struct {
	sequence                     uint64
	uid, epoch, version, meaning string
}

// message is one on the stream, about an object, living or not.
type message struct {
	name     types.NamespacedName
	sequence uint64
}

// holds reports whether h has the meaning of o. Of an earlier epoch only the very same state will
// do: consumers write by the version that they were told.
func (h head) holds(o source.Object) bool {
	return h.meaning == o.Meaning && (h.epoch == o.Epoch || h.version == o.ResourceVersion)
}

// state is the state of one object that waits for publication.
type state struct {
	source.Object
	// unseen means that the object is gone without having been seen: all that is known
	// is on the stream.
	unseen bool
	// former are the last states of objects that had this name before, while it waited.
	former []event.Change
	order  uint64
}

// weight is what s takes of the backlog.
func (s state) weight() int64 {
	all := weight(s.Change)
	for _, c := range s.former {
		all += weight(c)
	}
	return all
}

func weight(c event.Change) int64 { return min(int64(len(c.Object)), backlogBytes) }

// after makes s the newest state of its name: what waited before is either obsolete or, if it is
// another object's, the last that will be known of that.
func (s state) after(old state) state {
	s.former = old.former
	if old.UID != s.UID && !old.unseen {
		old.Change.Deleted = true
		s.former = append(slices.Clip(s.former), old.Change)
	}
	return s
}

func newKindReflector(r *reflector, kind kinds.Kind, on *lane) *kindReflector {
	return &kindReflector{
		cfg: r.cfg, reflector: r, lane: on, kind: kind, restart: func(error) {}, marked: func(*eventv1.SnapshotMarker) {},
		right: func(*eventv1.SnapshotMarker) bool { return true }, heard: time.Now(),
		heads: map[types.NamespacedName]head{}, waiting: map[types.NamespacedName]state{},
	}
}

func (k *kindReflector) key(name types.NamespacedName) event.Key {
	return event.Key{Cluster: k.cfg.Cluster, GroupResource: k.kind.GroupResource, Namespace: name.Namespace, Name: name.Name}
}

func nameOf(k event.Key) types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}

// observe takes what the API server told. It waits while too much is unpublished.
func (k *kindReflector) observe(ctx context.Context, o source.Object) error {
	if k.known(&o) {
		return nil
	}
	if err := k.lane.backlog.Acquire(ctx, weight(o.Change)); err != nil {
		return fmt.Errorf("waiting for the bus to take %s: %w", o.Key, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := state{Object: o}
	if old, ok := k.waiting[nameOf(o.Key)]; ok {
		s = s.after(old)
		k.lane.backlog.Release(old.weight() + weight(o.Change) - s.weight())
	}
	k.enqueue(s)
	return nil
}

// known reports whether the stream holds the meaning of o already, which becomes one of this epoch.
func (k *kindReflector) known(o *source.Object) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	o.Epoch = k.epoch
	name := nameOf(o.Key)
	if k.sweep != nil {
		k.sweep.listed(name)
	}
	_, waiting := k.waiting[name]
	return !waiting && !o.Deleted && k.heads[name].holds(*o)
}

// enqueue makes s the newest state of its object.
func (k *kindReflector) enqueue(s state) {
	k.arrived++
	s.order = k.arrived
	k.waiting[nameOf(s.Key)] = s
	queue := k.lane.fresh
	if _, told := k.heads[nameOf(s.Key)]; told {
		queue = k.lane.changed
	}
	queue.Add(task{on: k, name: nameOf(s.Key)})
	k.cfg.Metrics.waiting.WithLabelValues(k.label()).Set(float64(len(k.waiting)))
}

// do is one task: see [task].
func (k *kindReflector) do(ctx context.Context, name types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if name.Name == "" {
		return k.mark(ctx)
	}
	k.mu.Lock()
	s, ok := k.waiting[name]
	on, round := k.heads[name], k.round
	k.mu.Unlock()
	if !ok {
		return nil
	}
	ack, err := k.publish(ctx, s, on)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if round != k.round {
		k.lane.fresh.Add(task{on: k, name: name})
		return nil
	}
	k.record(ack)
	k.dequeue(name, s)
	return nil
}

// record remembers what the stream holds. The strings are copied: they would hold on
// to the message that they were cut from.
func (k *kindReflector) record(h publish.Head) {
	k.highest = max(k.highest, h.Sequence)
	name := nameOf(h.Key)
	if h.Sequence > k.newest.sequence {
		k.newest = message{types.NamespacedName{Namespace: strings.Clone(name.Namespace), Name: strings.Clone(name.Name)}, h.Sequence}
	}
	switch {
	case h.Sequence < k.heads[name].sequence && h.Sequence != 0:
	case h.Deleted || h.Sequence == 0:
		delete(k.heads, name)
	default:
		name = types.NamespacedName{Namespace: strings.Clone(name.Namespace), Name: strings.Clone(name.Name)}
		k.heads[name] = head{
			sequence: h.Sequence, uid: strings.Clone(h.UID), epoch: unique.Make(h.Epoch).Value(),
			version: strings.Clone(h.Version), meaning: strings.Clone(h.Meaning),
		}
	}
	k.cfg.Metrics.objects.WithLabelValues(k.label()).Set(float64(len(k.heads)))
}

// dequeue takes s off the list, unless a newer state came meanwhile.
func (k *kindReflector) dequeue(name types.NamespacedName, s state) {
	if newest := k.waiting[name]; newest.order == s.order {
		k.lane.backlog.Release(newest.weight())
		delete(k.waiting, name)
		k.cfg.Metrics.waiting.WithLabelValues(k.label()).Set(float64(len(k.waiting)))
	}
	if k.sweep != nil && k.sweep.published(name, s.order) {
		k.lane.fresh.Add(task{on: k})
	}
}

func (k *kindReflector) label() string {
	return path.Join(k.kind.GroupResource.String(), k.kind.Namespace)
}
