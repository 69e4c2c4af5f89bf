package reflector

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// relistProgress is a comparison of the stream with the API server in progress.
type relistProgress struct {
	began time.Time
	// bodies means that the sweep reads everything.
	bodies   bool
	streamID string
	// newest is the API server's version in the last barrier or marker. Versions of messages do not count: a forged one
	// may have any.
	newest string
	// seen holds the objects that the list has returned so far. It is nil once the list is complete.
	seen map[types.NamespacedName]struct{}
	// open holds the objects to publish before the marker, each with the lowest order that counts.
	open   map[types.NamespacedName]uint64
	marker *eventv1.SnapshotMarker
}

func (s *relistProgress) recordListed(name types.NamespacedName) {
	if s.seen != nil {
		s.seen[name] = struct{}{}
	}
}

// recordPublished records a publication, and reports whether the marker can follow.
func (s *relistProgress) recordPublished(name types.NamespacedName, order uint64) bool {
	if needed, ok := s.open[name]; ok && order >= needed {
		delete(s.open, name)
	}
	return s.marker != nil && len(s.open) == 0
}

// beginRelist starts a sweep and reads the messages on the stream. It reads their bodies in the first sweep of a term,
// after a doubt, and in each regular sweep. A forged body may have right headers, and a restored backup may contain
// such a body.
func (k *kindReflector) beginRelist(ctx context.Context) (*relistProgress, error) {
	if _, err := k.cfg.Source.ClusterUID(ctx); err != nil {
		return nil, err
	}
	streamID, err := k.reflector.ensureStreamID(ctx)
	if err != nil {
		return nil, err
	}
	s := &relistProgress{began: time.Now(), streamID: streamID, seen: map[types.NamespacedName]struct{}{}}
	epoch, err := k.startRelistInEpoch(ctx, s)
	if err != nil {
		return nil, err
	}
	s.newest = k.lastRecordedVersion(ctx, epoch)
	k.mu.Lock()
	bodies := k.stream == "" || k.doubted || time.Now().After(k.due)
	k.mu.Unlock()
	s.bodies = bodies
	for stored, err := range k.storedMessages(ctx, bodies) {
		if err != nil {
			return nil, err
		}
		if k.isOfOtherReflector(stored.Entry) {
			continue
		}
		head := k.entryOfStoredMessage(stored)
		k.reflector.adoptLaterEpoch(head)
		k.mu.Lock()
		k.recordPublishedEntry(head)
		k.mu.Unlock()
	}
	return s, nil
}

// lastRecordedVersion returns the API server's version of the kind in the last barrier or marker of the epoch.
func (k *kindReflector) lastRecordedVersion(ctx context.Context, epoch string) (version string) {
	if last, _, err := k.cfg.Publisher.LastBarrier(ctx, k.cfg.Cluster); err == nil && last.GetEpoch() == epoch {
		version = last.GetResourceVersions()[k.kindLabel()]
	}
	if m, err := k.cfg.Publisher.LastMarker(ctx, k.cfg.Cluster, k.kind.GroupResource); err == nil && m.GetEpoch() == epoch {
		version = laterVersion(version, m.GetResourceVersion())
	}
	return version
}

// startRelistInEpoch makes s the kind's sweep, in the current epoch.
func (k *kindReflector) startRelistInEpoch(ctx context.Context, s *relistProgress) (epoch string, err error) {
	epoch = k.reflector.epoch.currentEpoch()
	if err := k.publishEpochChange(ctx, epoch); err != nil {
		return "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sweep, k.epoch = s, epoch
	k.round++
	k.highest, k.newest = 0, publishedMessage{}
	clear(k.heads)
	return epoch, nil
}

// publishEpochChange ends the kind's epoch if another has begun. Its marker makes consumers wait for the end of the
// sweep, because until then the stream mixes states of two epochs.
func (k *kindReflector) publishEpochChange(ctx context.Context, next string) error {
	k.mu.Lock()
	before := k.epoch
	k.mu.Unlock()
	if before == "" || before == next {
		return nil
	}
	m := &eventv1.SnapshotMarker{
		Cluster: k.cfg.Cluster, Group: k.kind.Group, Resource: k.kind.Resource, Target: k.kind.Target, Epoch: next, WrittenAt: timestamppb.Now(),
	}
	if err := k.publishMarker(ctx, m); err != nil {
		return err
	}
	k.marked(m)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen, k.ahead = "", ""
	return nil
}

// compareResourceVersions orders versions; an empty one is the lowest.
func compareResourceVersions(a, b string) (int, error) {
	if a == "" || b == "" {
		return len(a) - len(b), nil
	}
	return resourceversion.CompareResourceVersion(a, b)
}

// relistKind compares every object with the stream and returns the version and the size of the list.
func (k *kindReflector) relistKind(ctx context.Context, s *relistProgress) (version string, count int64, err error) {
	var page source.Page
	for first := true; first || page.Next != ""; first = false {
		if page, err = k.cfg.Source.List(ctx, k.kind, page.Next); err != nil {
			return "", 0, err
		}
		k.recordAPIServerAnswer()
		if err := k.checkPageVersion(page, s); err != nil {
			return "", 0, err
		}
		for _, o := range page.Objects {
			if err := k.enqueueObservedState(ctx, o); err != nil {
				return "", 0, err
			}
		}
		count += int64(len(page.Objects))
	}
	k.clearRewind()
	return page.Version, count, nil
}

// checkPageVersion returns [errRewound] if a page is older than the known versions.
func (k *kindReflector) checkPageVersion(page source.Page, s *relistProgress) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.rewindErr(page.Version, laterVersion(s.newest, k.seen)); err != nil {
		return err
	}
	k.seen = page.Version
	return nil
}

// enqueueDeletionsAndMarker enqueues deletions for the objects that the list lacks. The marker follows when everything
// is published. If the sweep was restarted in the meantime, nothing is enqueued: s lacks the objects that were listed
// since, and another sweep follows.
func (k *kindReflector) enqueueDeletionsAndMarker(s *relistProgress, version string, count int64, served bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sweep != s {
		return
	}
	for name := range k.heads {
		if _, seen := s.seen[name]; !seen {
			k.enqueueDeletion(name, version)
		}
	}
	for name := range k.waiting {
		if _, seen := s.seen[name]; !seen {
			k.enqueueDeletion(name, version)
		}
	}
	s.open = make(map[types.NamespacedName]uint64, len(k.waiting))
	for name, state := range k.waiting {
		s.open[name] = state.order
	}
	k.cfg.Metrics.differing.WithLabelValues(k.kindLabel()).Observe(float64(len(s.open)))
	s.marker = &eventv1.SnapshotMarker{
		Cluster: k.cfg.Cluster, Group: k.kind.Group, Resource: k.kind.Resource, Epoch: k.epoch,
		ResourceVersion: version, Count: count, Stream: s.streamID, Served: served,
	}
	if k.kind.Target {
		s.marker.Target, s.marker.Kind, s.marker.Version, s.marker.Namespaced = true, k.kind.Kind, k.kind.Version, !k.kind.ClusterScoped
	}
	if k.kind.Target && !served {
		s.marker.Problem = describeFollowProblem(source.ErrNotServed)
	}
	s.seen = nil
	k.lane.fresh.Add(publishTask{on: k})
}

// enqueueDeletion enqueues the deletion of an object whose deletion was not observed.
func (k *kindReflector) enqueueDeletion(name types.NamespacedName, version string) {
	s, waiting := k.waiting[name]
	switch {
	case !waiting:
		gone := event.Change{Key: k.keyOf(name), Deleted: true, Epoch: k.epoch, ResourceVersion: version, ObservedAt: time.Now()}
		s = pendingState{Object: source.Object{Change: gone}, unseen: true}
	case s.Deleted:
		return
	default:
		s.Deleted, s.Epoch = true, k.epoch
		if version != "" {
			s.ResourceVersion = version
		}
	}
	k.enqueueState(s)
}

// publishDueMarker publishes the marker once everything before it is published.
func (k *kindReflector) publishDueMarker(ctx context.Context) error {
	k.mu.Lock()
	s := k.sweep
	if s == nil || s.marker == nil || len(s.open) > 0 {
		k.mu.Unlock()
		return nil
	}
	if k.kind == kinds.ProtectedResources() && !k.reflector.targets.hasAllMarkers(markerScope{s.streamID, k.epoch}) {
		k.mu.Unlock()
		return nil // Consumers of this marker must find one of each registered kind.
	}
	m := s.marker
	m.LastSequence, m.Count, m.WrittenAt = k.highest, int64(len(k.heads)), timestamppb.Now()
	k.mu.Unlock()
	if err := k.publishMarker(ctx, m); err != nil {
		return err
	}
	if !k.completeRelist(s) {
		return k.cfg.Publisher.DeleteMarker(ctx, k.cfg.Cluster, k.kind.GroupResource)
	}
	k.cfg.Health.recordKindComplete(k.kindLabel())
	k.marked(m)
	took := time.Since(s.began)
	k.cfg.Metrics.sweeps.WithLabelValues(k.kindLabel()).Observe(took.Seconds())
	k.cfg.Log.InfoContext(ctx, "snapshot complete", "kind", k.kindLabel(), "served", m.GetServed(), "objects", m.GetCount(),
		"version", m.GetResourceVersion(), "sequence", m.GetLastSequence(), "took", took)
	return nil
}

// completeRelist ends s. It returns false if another sweep began meanwhile, because the stream may have lost messages.
func (k *kindReflector) completeRelist(s *relistProgress) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sweep != s {
		return false
	}
	k.sweep, k.stream, k.doubted = nil, s.streamID, false
	k.due = time.Now().Add(k.cfg.Resync - rand.N(k.cfg.Resync/10+1))
	return true
}
