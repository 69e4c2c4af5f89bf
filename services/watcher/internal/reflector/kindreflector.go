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

// kindReflector keeps the objects of one kind on the stream.
type kindReflector struct {
	cfg       Config
	reflector *reflector
	lane      *publishQueue
	kind      kinds.Kind
	// marked is called with each marker that is written.
	marked func(*eventv1.SnapshotMarker)
	// right reports whether a marker of the present stream is the expected one.
	right func(*eventv1.SnapshotMarker) bool

	mu sync.Mutex
	// epoch is the epoch in which the kind is swept and watched.
	epoch string
	// seen is the newest version from the API server in that epoch. The stream may hold a newer version that this
	// watcher did not receive from the API server: ahead is the newest such version.
	seen, ahead string
	// heads holds the message on the stream for each living object.
	heads map[types.NamespacedName]compactEntry
	// waiting holds the states that are not published yet.
	waiting map[types.NamespacedName]pendingState
	// suspects holds the objects about which another client wrote a message.
	suspects map[types.NamespacedName]suspectSource
	// arrived numbers the states in the order of arrival.
	arrived uint64
	// round numbers the sweeps. An acknowledgement from an earlier round proves nothing, because the stream may have
	// been wiped since.
	round int
	// highest is the highest known sequence of this kind.
	highest uint64
	// sweep is the sweep in progress. It is nil once its marker is written.
	sweep *relistProgress
	// stream is the stream ID in the last marker. It is empty before the first.
	stream string
	// doubted means that the stream may have lost messages of the kind since that marker.
	doubted bool
	// due is the time of the next regular sweep.
	due time.Time
	// restart ends the work in progress and starts a new sweep.
	restart context.CancelCauseFunc
	// newest is the message published last, suspect one that was not found. turn counts the probes.
	newest, suspect publishedMessage
	turn            int
	// opened is the start of the open watch, closed the end of the last one that counted.
	opened, closed time.Time
	// heard is the time of the API server's last answer.
	heard time.Time
	// bookmarked means that the API server sends bookmarks of the kind: not every aggregated one does.
	bookmarked bool
}

// compactEntry is a [publish.Entry] without the fields that follow from its place. version is empty if the message was
// refused.
type compactEntry struct {
	sequence                         uint64
	uid, epoch, version, contentHash string
}

// publishedMessage is a message on the stream about an object, living or not.
type publishedMessage struct {
	name     types.NamespacedName
	sequence uint64
}

// matchesContentOf reports whether h has the meaning of o and no later version. In an earlier epoch only the very same
// version counts, because consumers write by the version they received.
func (h compactEntry) matchesContentOf(o source.Object) bool {
	if h.contentHash != o.ContentHash || h.version == o.ResourceVersion {
		return h.contentHash == o.ContentHash
	}
	order, err := compareResourceVersions(h.version, o.ResourceVersion)
	return h.epoch == o.Epoch && err == nil && order < 0
}

// pendingState is the state of one object that waits for publication.
type pendingState struct {
	source.Object
	// unseen means that the deletion was not observed. Only the stream holds the last state.
	unseen bool
	// former holds the last states of earlier objects with this name, replaced while it waited.
	former []event.Change
	order  uint64
}

// backlogWeight returns the share of s in the backlog.
func (s pendingState) backlogWeight() int64 {
	all := backlogWeightOf(s.Change)
	for _, c := range s.former {
		all += backlogWeightOf(c)
	}
	return all
}

func backlogWeightOf(c event.Change) int64 { return min(int64(len(c.Object)), backlogBytes) }

// withPredecessor returns s as the newest state of its name. The old state is obsolete or, if it belongs to another
// object, becomes the last state of that object.
func (s pendingState) withPredecessor(old pendingState) pendingState {
	s.former = old.former
	if old.UID != s.UID && !old.unseen {
		old.Change.Deleted = true
		s.former = append(slices.Clip(s.former), old.Change)
	}
	return s
}

func newKindReflector(r *reflector, kind kinds.Kind, on *publishQueue) *kindReflector {
	return &kindReflector{
		cfg: r.cfg, reflector: r, lane: on, kind: kind, restart: func(error) {}, marked: func(*eventv1.SnapshotMarker) {},
		right: func(*eventv1.SnapshotMarker) bool { return true }, heard: time.Now(),
		heads: map[types.NamespacedName]compactEntry{}, waiting: map[types.NamespacedName]pendingState{}, suspects: map[types.NamespacedName]suspectSource{},
	}
}

func (k *kindReflector) keyOf(name types.NamespacedName) event.Key {
	return event.Key{Cluster: k.cfg.Cluster, GroupResource: k.kind.GroupResource, Namespace: name.Namespace, Name: name.Name}
}

func namespacedNameOf(k event.Key) types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}

// enqueueObservedState enqueues a state from the API server. It blocks while the backlog is full.
func (k *kindReflector) enqueueObservedState(ctx context.Context, o source.Object) error {
	if k.recordAndCheckPublished(&o) {
		return nil
	}
	if err := k.lane.backlog.Acquire(ctx, backlogWeightOf(o.Change)); err != nil {
		return fmt.Errorf("waiting until the bus accepts %s: %w", o.Key, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := pendingState{Object: o}
	if old, ok := k.waiting[namespacedNameOf(o.Key)]; ok {
		s = s.withPredecessor(old)
		k.lane.backlog.Release(old.backlogWeight() + backlogWeightOf(o.Change) - s.backlogWeight())
	}
	k.enqueueState(s)
	return nil
}

// recordAndCheckPublished reports whether the stream already holds the meaning of o. It also sets the epoch of o.
func (k *kindReflector) recordAndCheckPublished(o *source.Object) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	o.Epoch = k.epoch
	name := namespacedNameOf(o.Key)
	if k.sweep != nil {
		k.sweep.recordListed(name)
	}
	_, waiting := k.waiting[name]
	return !waiting && !o.Deleted && k.heads[name].matchesContentOf(*o)
}

// enqueueState makes s the newest state of its object.
func (k *kindReflector) enqueueState(s pendingState) {
	k.arrived++
	s.order = k.arrived
	k.waiting[namespacedNameOf(s.Key)] = s
	queue := k.lane.fresh
	if _, told := k.heads[namespacedNameOf(s.Key)]; told {
		queue = k.lane.changed
	}
	queue.Add(publishTask{on: k, name: namespacedNameOf(s.Key)})
	k.cfg.Metrics.waiting.WithLabelValues(k.kindLabel()).Set(float64(len(k.waiting)))
}

// runPublishTask carries out one task: see [publishTask].
func (k *kindReflector) runPublishTask(ctx context.Context, name types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if name.Name == "" {
		return k.publishDueMarker(ctx)
	}
	if err := k.correctSuspectMessage(ctx, name); err != nil {
		return err
	}
	k.mu.Lock()
	s, ok := k.waiting[name]
	on, round := k.heads[name], k.round
	k.mu.Unlock()
	if !ok {
		return nil
	}
	ack, err := k.publishState(ctx, s, on)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if round != k.round {
		k.lane.fresh.Add(publishTask{on: k, name: name})
		return nil
	}
	k.recordPublishedEntry(ack)
	k.dequeueState(name, s)
	return nil
}

// correctSuspectMessage compares an object about which another client wrote a message with the API server.
func (k *kindReflector) correctSuspectMessage(ctx context.Context, name types.NamespacedName) error {
	k.mu.Lock()
	by := k.suspects[name]
	delete(k.suspects, name)
	round := k.round
	k.mu.Unlock()
	if by == byNone {
		return nil
	}
	head, err := k.correctPublishedMessage(ctx, name, by)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
		k.suspects[name] = max(k.suspects[name], by)
	case round == k.round && head.Sequence > 0:
		k.recordPublishedEntry(head)
	}
	return err
}

// recordPublishedEntry stores the message on the stream. It copies the strings, because they would keep the whole
// message in memory.
func (k *kindReflector) recordPublishedEntry(h publish.Entry) {
	k.highest = max(k.highest, h.Sequence)
	name := namespacedNameOf(h.Key)
	if h.Sequence > k.newest.sequence {
		k.newest = publishedMessage{types.NamespacedName{Namespace: strings.Clone(name.Namespace), Name: strings.Clone(name.Name)}, h.Sequence}
	}
	switch {
	case h.Sequence < k.heads[name].sequence && h.Sequence != 0:
	case h.Deleted || h.Sequence == 0:
		delete(k.heads, name)
	default:
		name = types.NamespacedName{Namespace: strings.Clone(name.Namespace), Name: strings.Clone(name.Name)}
		k.heads[name] = compactEntry{
			sequence: h.Sequence, uid: strings.Clone(h.UID), epoch: unique.Make(h.Epoch).Value(),
			version: strings.Clone(h.Version), contentHash: strings.Clone(h.ContentHash),
		}
	}
	k.cfg.Metrics.objects.WithLabelValues(k.kindLabel()).Set(float64(len(k.heads)))
}

// dequeueState removes s from the waiting states, unless a newer state arrived meanwhile.
func (k *kindReflector) dequeueState(name types.NamespacedName, s pendingState) {
	if newest := k.waiting[name]; newest.order == s.order {
		k.lane.backlog.Release(newest.backlogWeight())
		delete(k.waiting, name)
		k.cfg.Metrics.waiting.WithLabelValues(k.kindLabel()).Set(float64(len(k.waiting)))
	}
	if k.sweep != nil && k.sweep.recordPublished(name, s.order) {
		k.lane.fresh.Add(publishTask{on: k})
	}
}

// hasValidMarker reports whether the kind has a marker that this term wrote and did not withdraw.
func (k *kindReflector) hasValidMarker() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stream != "" && !k.doubted
}

func (k *kindReflector) kindLabel() string {
	return path.Join(k.kind.GroupResource.String(), k.kind.Namespace)
}
