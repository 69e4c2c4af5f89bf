// Package informer keeps the newest state of every object of some kinds in memory, decoded and indexed. NATS feeds it
// from the stream of changes, and services decide from it.
//
// An informer is complete when it holds everything that the watcher's snapshot markers cover, and has read a barrier
// written after the load began. A barrier is a message that the watcher writes every second; it names the previous
// barrier. While an informer is incomplete, a service must not grant and must not conclude that an object does not
// exist.
//
// The age of the informer is bounded by barriers. If a barrier does not continue the last one, the stream was
// replaced, and the informer loads it again.
package informer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/singleflight"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// ErrIncomplete is wrapped by the error of [Informer.IncompleteErr] while the informer is incomplete.
var ErrIncomplete = errors.New("informer is incomplete")

// Config configures an informer. JS and Log are required. FetchLargeObject is required if objects may be too large for
// NATS.
type Config struct {
	JS jetstream.JetStream
	// Service is the name of the service that owns the informer.
	Service string
	// Cluster restricts the informer to the objects of one cluster; empty means all clusters.
	Cluster string
	// FetchLargeObject reads an object that is too large for NATS, as JSON. It returns nil if the object does not exist.
	FetchLargeObject func(context.Context, event.Key) ([]byte, error)
	// KeepUndecodable makes the informer store an undecodable object without a value, in place of its earlier state.
	// Set it in a service that grants from existing objects and has no consumer. With a consumer, such a change becomes
	// a dead letter.
	KeepUndecodable bool
	Log             *slog.Logger
}

// Informer holds the listers and forwarders of several kinds. Create one with [New], add kinds with [RegisterLister],
// then call [Informer.Run].
type Informer struct {
	cfg Config

	// applying is held while a change is stored and its callbacks run.
	applying sync.Mutex
	// decoding merges concurrent calls with the same state. Usually the feed and the service's consumer bring the same
	// state at the same time.
	decoding singleflight.Group
	loads    atomic.Uint64

	mu     sync.RWMutex
	tables map[event.GroupResource]kindTable
	// named holds the kinds that have no snapshot marker.
	named map[event.GroupResource]bool
	// streamID is the creation time of the loaded stream; empty before the first load.
	streamID string
	// read is the time, by the server's clock, at which the information about that stream was requested.
	read time.Time
	// position is the last sequence that was read from the stream. changed is the sequence of the last change.
	position, changed uint64
	// lastRead is the time, by the server's clock, at which the stream stored the message at position.
	lastRead time.Time
	// targeted holds the sequence of the last change of each target kind.
	targeted map[snapshotScope]uint64
	// brought counts the delivered messages and the attempts to store a message. It shows that the feed makes
	// progress.
	brought atomic.Uint64
	// syncedAt is the last time, by [bootclock.Now], at which the informer was known to hold the whole stream.
	syncedAt time.Duration
	// lastBarriers holds the last barrier of each cluster since the load began. barrierRead signals a new
	// barrier.
	lastBarriers map[string]clusterBarrier
	// halts holds the reasons of the halts that were not resumed, by their digests. A reload keeps them.
	halts       map[string]string
	barrierRead chan struct{}
	// consumer is the name of the consumer that feeds the informer. Only the feed uses it.
	consumer string
	clock    natsClock
	markers  map[snapshotScope]snapshotMarker
	// marked is true once the feed has read all snapshot markers that existed when it began.
	marked bool
	// refused holds the subjects whose last message was refused, with the time by [bootclock.Now].
	refused map[string]time.Duration
	// epochs holds the newest epoch of each cluster.
	epochs map[string]string
	// loading is true until the feed has read everything that the stream held when the load began.
	loading bool
	// blockedBy is the error that the feed is retrying.
	blockedBy error
	onBegin   []func()
	onLoad    []func()
	onReload  []func()
	onChange  []func(event.Key)
	onTarget  []func(event.GroupResource)
}

// snapshotScope identifies the objects that a snapshot marker covers: one kind in one cluster.
type snapshotScope struct {
	cluster string
	kind    event.GroupResource
}

// containsKey reports whether the scope includes an object. An empty cluster matches every cluster.
func (s snapshotScope) containsKey(k event.Key) bool {
	return k.GroupResource == s.kind && (s.cluster == "" || s.cluster == k.Cluster)
}

func (s snapshotScope) String() string {
	if s.cluster == "" {
		return s.kind.String()
	}
	return fmt.Sprintf("%s in cluster %q", s.kind, s.cluster)
}

// snapshotMarker is the newest snapshot marker of a kind in a cluster.
type snapshotMarker struct {
	message *eventv1.SnapshotMarker
	// sequence is the marker's sequence in its stream and identifies it.
	sequence uint64
	// written is the time at which the server stored the marker.
	written time.Time
	// counted means that the informer compared its objects with the marker. told means that the callbacks of
	// [Informer.OnTargetKindChange] have run.
	counted, told bool
}

// New returns an empty informer.
func New(cfg Config) *Informer {
	return &Informer{
		cfg: cfg, tables: map[event.GroupResource]kindTable{}, named: map[event.GroupResource]bool{},
		markers: map[snapshotScope]snapshotMarker{}, targeted: map[snapshotScope]uint64{}, refused: map[string]time.Duration{}, epochs: map[string]string{},
		lastBarriers: map[string]clusterBarrier{}, halts: map[string]string{}, barrierRead: make(chan struct{}, 1),
	}
}

// Kinds lists the kinds of the informer.
func (v *Informer) Kinds() []event.GroupResource { return slices.Collect(maps.Keys(v.tables)) }

// OnReload adds a callback that runs after each reload. In a reload, objects may disappear without a tombstone. Call
// OnReload before [Informer.Run].
func (v *Informer) OnReload(f func()) { v.onReload = append(v.onReload, f) }

// OnReset adds a callback that runs before the stream is read from its start. All states that forwarders passed on
// before become invalid. The callback must be quick and must not call the informer. Call OnReset before
// [Informer.Run].
func (v *Informer) OnReset(f func()) { v.onBegin = append(v.onBegin, f) }

// OnLoaded adds a callback that runs when a load has become visible, before the informer counts as complete. No change
// is stored until the callback returns. Use it to compute state from all objects, and [Informer.OnChange] to keep that
// state current. Call OnLoaded before [Informer.Run].
func (v *Informer) OnLoaded(f func()) { v.onLoad = append(v.onLoad, f) }

// RunBetweenChanges calls f between two changes, when the listers and the state of all callbacks agree. f must be
// quick and must not call [Informer.Apply].
func (v *Informer) RunBetweenChanges(f func()) {
	v.applying.Lock()
	defer v.applying.Unlock()
	f()
}

// OnChange adds a callback that runs after each stored change, before [Informer.Apply] of that change returns.
// Callbacks never run in parallel. They must be quick and must not call [Informer.Apply]. Call OnChange before
// [Informer.Run].
func (v *Informer) OnChange(f func(event.Key)) { v.onChange = append(v.onChange, f) }

// IncompleteErr returns nil if the informer is complete: it holds every kind of every cluster that has a watcher.
// Otherwise the error wraps [ErrIncomplete] and names the missing part.
func (v *Informer) IncompleteErr() error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	err := v.checkSnapshotsComplete()
	if err != nil && v.blockedBy != nil {
		err = fmt.Errorf("%w; the next change cannot be stored: %w", err, v.blockedBy)
	}
	return err
}

// LoadNumber returns the number of the load that the informer shows or reads.
func (v *Informer) LoadNumber() uint64 { return v.loads.Load() }

// CheckLoad returns nil if the informer is complete and has not begun another load since [Informer.LoadNumber] returned
// the number. Then everything that was read from the informer in between counts.
func (v *Informer) CheckLoad(number uint64) error {
	if err := v.IncompleteErr(); err != nil {
		return err
	}
	if v.LoadNumber() != number {
		return fmt.Errorf("%w: the stream of changes was read again", ErrIncomplete)
	}
	return nil
}

// checkSnapshotsComplete implements [Informer.IncompleteErr], without the error that blocks the feed. The caller holds
// the lock.
func (v *Informer) checkSnapshotsComplete() error {
	if v.streamID == "" || v.loading || !v.marked {
		return fmt.Errorf("%w: the stream of changes has not been read", ErrIncomplete)
	}
	if old := bootclock.Since(v.syncedAt); old > maxUnverified {
		return fmt.Errorf("%w: no message of the stream of changes was received for %s", ErrIncomplete, old.Round(time.Second))
	}
	for _, reason := range v.halts {
		return fmt.Errorf("%w: all services are halted: %s", ErrIncomplete, reason)
	}
	for subject := range v.refused {
		return fmt.Errorf("%w: the message on %.200s was refused; the watcher publishes the object again", ErrIncomplete, subject)
	}
	for _, cluster := range v.listClusters() {
		for kind := range v.tables {
			of := snapshotScope{cluster, kind}
			if kind == kinds.AllTargets() { // checkTargetsComplete has a separate check for the target kinds.
				continue
			}
			switch m := v.markers[of]; {
			case v.named[kind]:
			case m.message.GetStream() != v.streamID:
				return fmt.Errorf("%w: no snapshot of %s on the bus; does the watcher run, and follow this kind?", ErrIncomplete, of)
			case m.message.GetLastSequence() > v.position:
				return fmt.Errorf("%w: snapshot of %s read up to %d of %d", ErrIncomplete, of, v.position, m.message.GetLastSequence())
			}
		}
		if err := v.checkBarrierRead(cluster); err != nil {
			return err
		}
	}
	return v.checkTargetsComplete()
}

// listClusters lists the clusters that have a marker or a barrier. If there are none, it returns the configured
// cluster.
func (v *Informer) listClusters() []string {
	known := map[string]bool{}
	for s := range v.markers {
		known[s.cluster] = true
	}
	for cluster := range v.lastBarriers {
		known[cluster] = true
	}
	if len(known) == 0 {
		known[v.cfg.Cluster] = true
	}
	return slices.Sorted(maps.Keys(known)) // The order is fixed so that errors are the same each time.
}

// Keys lists the keys of all objects, including tombstones. A key may occur twice.
func (v *Informer) Keys() []event.Key {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var keys []event.Key
	for _, t := range v.tables {
		keys = t.appendKeys(keys)
	}
	return keys
}

// HasLive reports whether the informer holds a live object with this key.
func (v *Informer) HasLive(k event.Key) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	t, ok := v.tableOf(k.GroupResource)
	return ok && t.hasLive(k)
}

// tableOf returns the lister or forwarder of a kind. All target kinds share one lister.
func (v *Informer) tableOf(of event.GroupResource) (t kindTable, ok bool) {
	if of.Target {
		of = kinds.AllTargets()
	}
	t, ok = v.tables[of]
	return t, ok
}

// WithCurrentEpoch returns an answer of the API server as a change of the newest epoch. The API server's answer has no
// epoch of its own.
func (v *Informer) WithCurrentEpoch(answer event.Change) event.Change {
	v.mu.RLock()
	defer v.mu.RUnlock()
	newest := v.epochs[answer.Key.Cluster]
	if order, ok := event.CompareEpochs(newest, answer.Epoch); ok && order > 0 {
		answer.Epoch = newest
	}
	return answer
}

// KeysPublishedSince lists the objects whose newest change was published, or written by this process, after a time. It
// includes tombstones.
func (v *Informer) KeysPublishedSince(since time.Time) []event.Key {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var keys []event.Key
	for _, t := range v.tables {
		keys = t.appendPublishedSince(keys, since)
	}
	return keys
}

const (
	// reloadDelay is the wait between two attempts to read the stream.
	reloadDelay = 250 * time.Millisecond
	// expireInterval is the time between two removals of expired tombstones.
	expireInterval = time.Minute
	// reportAfter is the time after which an incomplete informer is logged. reportInterval is the time between two
	// checks.
	reportAfter, reportInterval = 10 * time.Second, time.Second
)

// Run feeds the informer until ctx ends. It continues after a restart of the server, and after the stream is deleted
// and created again.
func (v *Informer) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	loops.Go(func() { v.expireTombstonesLoop(ctx) })
	loops.Go(func() { v.reportIncompleteLoop(ctx) })
	defer loops.Wait()
	logged, load := "", v.loads.Load()
	for ctx.Err() == nil {
		err := v.loadAndFollow(ctx)
		if now := v.loads.Load(); now != load {
			logged, load = "", now
		}
		// A replaced stream is read again without a warning.
		if ctx.Err() == nil && !errors.Is(err, errReplaced) && err.Error() != logged {
			v.cfg.Log.WarnContext(ctx, "informer interrupted; reading the stream again", slog.Any("error", err))
			logged = err.Error()
		}
		backoff.Sleep(ctx, reloadDelay)
	}
	return nil
}

// reportIncompleteLoop logs until ctx ends: once when the informer has been incomplete for reportAfter, and once when
// it is complete again.
func (v *Informer) reportIncompleteLoop(ctx context.Context) {
	complete, reported := time.Now(), false
	for backoff.Sleep(ctx, reportInterval) {
		err := v.IncompleteErr()
		switch {
		case err == nil && reported:
			v.cfg.Log.InfoContext(ctx, "the informer is complete again", slog.Duration("after", time.Since(complete)))
			complete, reported = time.Now(), false
		case err == nil:
			complete = time.Now()
		case !reported && time.Since(complete) >= reportAfter:
			v.cfg.Log.WarnContext(ctx, "the informer is incomplete; the service grants nothing", slog.Any("error", err))
			reported = true
		}
	}
}

// expireTombstonesLoop removes expired tombstones until ctx ends.
func (v *Informer) expireTombstonesLoop(ctx context.Context) {
	for backoff.Sleep(ctx, expireInterval) {
		v.mu.Lock()
		for _, t := range v.tables {
			t.expireTombstones(time.Now())
		}
		v.mu.Unlock()
	}
}
