package mirror

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// errRewound is returned when the API server is further back than the stream.
var errRewound = errors.New("the cluster went back in time (a restored backup?), so versions do not compare any more: " +
	"delete the stream and it will be filled anew")

// sweep is a comparison of stream and API server under way.
type sweep struct {
	began       time.Time
	incarnation string
	// newest is the highest resource version that the stream held.
	newest string
	// seen is what the list named so far; nil once it is complete.
	seen map[types.NamespacedName]struct{}
	// open is what has to be published before the marker: at least the state of that order.
	open   map[types.NamespacedName]uint64
	marker *eventv1.SnapshotMarker
}

func (s *sweep) see(name types.NamespacedName) {
	if s.seen != nil {
		s.seen[name] = struct{}{}
	}
}

// published is true when nothing is open any more.
func (s *sweep) published(name types.NamespacedName, order uint64) bool {
	if needed, ok := s.open[name]; ok && order >= needed {
		delete(s.open, name)
	}
	return s.marker != nil && len(s.open) == 0
}

// begin starts a sweep with what the stream holds.
func (f *feed) begin(ctx context.Context) (*sweep, error) {
	if _, err := f.Source.Epoch(ctx); err != nil {
		return nil, err
	}
	incarnation, err := f.incarnation(ctx)
	if err != nil {
		return nil, err
	}
	s := &sweep{began: time.Now(), incarnation: incarnation, seen: map[types.NamespacedName]struct{}{}}
	f.mu.Lock()
	f.sweep = s
	f.round++
	f.highest = 0
	clear(f.heads)
	f.mu.Unlock()
	for head, err := range f.Publisher.Heads(ctx, f.Cluster, f.kind.GroupResource) {
		if err == nil {
			err = f.own(head)
		}
		if err != nil {
			return nil, err
		}
		if order, err := compare(head.Version, s.newest); err == nil && order > 0 {
			s.newest = head.Version
		}
		f.mu.Lock()
		f.record(head)
		f.mu.Unlock()
	}
	return s, nil
}

// compare takes no version for the lowest.
func compare(a, b string) (int, error) {
	if a == "" || b == "" {
		return len(a) - len(b), nil
	}
	return resourceversion.CompareResourceVersion(a, b)
}

// list compares every object with the stream and tells the version of the list.
func (f *feed) list(ctx context.Context, s *sweep) (version string, count int64, err error) {
	var page source.Page
	for first := true; first || page.Next != ""; first = false {
		if page, err = f.Source.List(ctx, f.kind, page.Next); err != nil {
			return "", 0, err
		}
		if order, err := compare(page.Version, s.newest); err == nil && order < 0 {
			return "", 0, fmt.Errorf("%s is at version %s, the stream at %s: %w", f.label(), page.Version, s.newest, errRewound)
		}
		for _, o := range page.Objects {
			if err := f.observe(ctx, o); err != nil {
				return "", 0, err
			}
		}
		count += int64(len(page.Objects))
	}
	return page.Version, count, nil
}

// finish deletes what the list did not name, and lets the marker follow when all is published.
func (f *feed) finish(s *sweep, version string, count int64, served bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.heads {
		if _, seen := s.seen[name]; !seen {
			f.vanished(name, version)
		}
	}
	for name := range f.waiting {
		if _, seen := s.seen[name]; !seen {
			f.vanished(name, version)
		}
	}
	s.open = make(map[types.NamespacedName]uint64, len(f.waiting))
	for name, state := range f.waiting {
		s.open[name] = state.order
	}
	s.marker = &eventv1.SnapshotMarker{
		Cluster: f.Cluster, Group: f.kind.Group, Resource: f.kind.Resource, Epoch: f.epoch,
		ResourceVersion: version, Count: count, Stream: s.incarnation, Served: served,
	}
	s.seen = nil
	f.queue.Add(task{feed: f})
}

// vanished enqueues the deletion of an object that was not seen to go.
func (f *feed) vanished(name types.NamespacedName, version string) {
	s, waiting := f.waiting[name]
	switch {
	case !waiting:
		gone := event.Change{Key: f.key(name), Deleted: true, ResourceVersion: version, ObservedAt: time.Now()}
		s = state{Object: source.Object{Change: gone}, unseen: true}
	case s.Deleted:
		return
	default:
		s.Deleted = true
		if version != "" {
			s.ResourceVersion = version
		}
	}
	f.enqueue(s)
}

// mark publishes the marker when everything before it is published.
func (f *feed) mark(ctx context.Context) error {
	f.mu.Lock()
	s := f.sweep
	if s == nil || s.marker == nil || len(s.open) > 0 {
		f.mu.Unlock()
		return nil
	}
	m := s.marker
	m.LastSequence, m.WrittenAt = f.highest, timestamppb.Now()
	f.mu.Unlock()
	if err := f.Publisher.Marker(ctx, m); err != nil {
		return err
	}
	if !f.complete(s) {
		return f.Publisher.Unmark(ctx, f.Cluster, f.kind.GroupResource)
	}
	took := time.Since(s.began)
	f.Metrics.sweeps.WithLabelValues(f.label()).Observe(took.Seconds())
	f.Log.InfoContext(ctx, "snapshot complete", "kind", f.label(), "served", m.GetServed(), "objects", m.GetCount(),
		"version", m.GetResourceVersion(), "sequence", m.GetLastSequence(), "took", took)
	return nil
}

// complete ends s; false when another sweep began meanwhile, because the stream may have lost something.
func (f *feed) complete(s *sweep) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sweep != s {
		return false
	}
	f.sweep, f.stream = nil, s.incarnation
	f.due = time.Now().Add(f.Resync - rand.N(f.Resync/10+1))
	return true
}
