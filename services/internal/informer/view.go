// Package informer keeps the newest state of every object of some kinds in memory, decoded and indexed. NATS feeds it.
// Services decide from it.
//
// A view is complete once it holds, for every kind, everything that the watcher's snapshot marker covers. Before that,
// no service may conclude that an object does not exist, and none may grant. A view is also complete only after a
// barrier that the watcher wrote after the load began. It bounds its age by barriers, and loads again when a barrier does
// not name the last one that it has read.
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

// ErrIncomplete is the error of [Informer.IncompleteErr] while the view lacks something.
var ErrIncomplete = errors.New("view is incomplete")

// Config configures a view. JS and Log are required. Fetch is required if objects may be too large for NATS.
type Config struct {
	JS jetstream.JetStream
	// Service is the name of the service that owns the view.
	Service string
	// Cluster restricts the view to the objects of one cluster; empty means all clusters.
	Cluster string
	// Fetch reads an object that NATS could not carry, as JSON. It returns nil if the object is gone.
	Fetch func(context.Context, event.Key) ([]byte, error)
	// KeepUndecodable makes the view store an object that cannot be decoded without a value, in place of its earlier state. It is
	// for services that grant from what exists and have no consumer that makes such a change a dead letter.
	KeepUndecodable bool
	Log             *slog.Logger
}

// Informer holds tables that change together. Create one with [New], declare its tables with [RegisterLister], then call
// [Informer.Run].
type Informer struct {
	cfg Config

	// applying is held while a change is stored and the callbacks run.
	applying sync.Mutex
	// decoding merges the work of callers that bring the same state at the same time: usually the feed and the
	// consumer.
	decoding singleflight.Group
	loads    atomic.Uint64

	mu     sync.RWMutex
	tables map[event.GroupResource]kindTable
	// named holds the kinds that have no snapshot marker.
	named map[event.GroupResource]bool
	// streamID is the creation time of the loaded stream; empty before the first load.
	streamID string
	// read is the time, by the server's clock, at which the server was asked for that stream.
	read time.Time
	// position is the last sequence read of that stream, changed the sequence of the last change.
	position, changed uint64
	// targeted holds the sequence of the last change of each kind of targets.
	targeted map[snapshotScope]uint64
	// brought counts two things: each message that the feed delivered, and each attempt to store one.
	brought atomic.Uint64
	// syncedAt is the last time, by [bootclock.Now], at which the view is known to have held everything that the stream
	// held.
	syncedAt time.Duration
	// proofs holds the last barriers since the load by cluster, dated by clock. beaten signals a new one.
	proofs map[string]provenBarrier
	// halts holds the reasons of the halts that were not resumed, by their digests. They survive a reload.
	halts  map[string]string
	beaten chan struct{}
	// consumer is the name of the consumer that feeds the view. Only the feed uses it.
	consumer string
	clock    serverClock
	markers  map[snapshotScope]snapshotMarker
	// marked is true once a feed has read all markers that existed when it began.
	marked bool
	// refused holds the subjects whose last message was refused, each with the time, by [bootclock.Now].
	refused map[string]time.Duration
	// epochs holds the newest epoch of each cluster.
	epochs map[string]string
	// loading is true until a feed has read everything that the stream held when the feed began.
	loading bool
	// blockedBy is the error for which the feed waits.
	blockedBy error
	onBegin   []func()
	onLoad    []func()
	onReload  []func()
	onChange  []func(event.Key)
	onTarget  []func(event.GroupResource)
}

// snapshotScope names the objects that a marker covers: those of a kind in a cluster.
type snapshotScope struct {
	cluster string
	kind    event.GroupResource
}

// containsKey reports whether the snapshot covers an object. An empty cluster matches every cluster.
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
	// sequence identifies the marker.
	sequence uint64
	// written is the time at which the server stored it.
	written time.Time
	// counted means that the view compared its objects with the marker. told means that the callbacks of
	// [Informer.OnTargetKind] ran.
	counted, told bool
}

// New returns an empty view.
func New(cfg Config) *Informer {
	return &Informer{
		cfg: cfg, tables: map[event.GroupResource]kindTable{}, named: map[event.GroupResource]bool{},
		markers: map[snapshotScope]snapshotMarker{}, targeted: map[snapshotScope]uint64{}, refused: map[string]time.Duration{}, epochs: map[string]string{},
		proofs: map[string]provenBarrier{}, halts: map[string]string{}, beaten: make(chan struct{}, 1),
	}
}

// Kinds lists the kinds that the view has tables for.
func (v *Informer) Kinds() []event.GroupResource { return slices.Collect(maps.Keys(v.tables)) }

// OnReload adds a callback that is called after each reload, when objects may have vanished without a deletion. Call
// OnReload before [Informer.Run].
func (v *Informer) OnReload(f func()) { v.onReload = append(v.onReload, f) }

// OnReset adds a callback that is called before the stream is read from its start: what sinks passed on before is void.
// It must be quick, and must not call the view. Call OnBegin before [Informer.Run].
func (v *Informer) OnReset(f func()) { v.onBegin = append(v.onBegin, f) }

// OnLoaded adds a callback that is called when tables show the loaded content, before the view counts as complete. No
// change is stored until it returns. It serves state that is derived from all objects and then kept current by
// [Informer.OnChange]. Call OnLoad before [Informer.Run].
func (v *Informer) OnLoaded(f func()) { v.onLoad = append(v.onLoad, f) }

// RunBetweenChanges calls f between two changes, when the tables and the state of all callbacks agree. f must be quick, and must
// not call [Informer.Apply].
func (v *Informer) RunBetweenChanges(f func()) {
	v.applying.Lock()
	defer v.applying.Unlock()
	f()
}

// OnChange adds a callback that is called after each stored change, one change after the other, before [Informer.Apply] of
// that change returns. It must be quick, and must not call [Informer.Apply]. Call OnChange before [Informer.Run].
func (v *Informer) OnChange(f func(event.Key)) { v.onChange = append(v.onChange, f) }

// IncompleteErr returns nil if the view holds the snapshot of every kind of every cluster that has a watcher. Otherwise the
// error wraps [ErrIncomplete] and says what is missing.
func (v *Informer) IncompleteErr() error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	err := v.checkComplete()
	if err != nil && v.blockedBy != nil {
		err = fmt.Errorf("%w; the next change cannot be taken in: %w", err, v.blockedBy)
	}
	return err
}

// checkComplete implements [Informer.IncompleteErr] without the obstacle of the feed. The caller holds the lock.
func (v *Informer) checkComplete() error {
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
			if kind == kinds.AllTargets() { // The marker of the kind that registers targets comes after theirs.
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
		if err := v.requireBarrier(cluster); err != nil {
			return err
		}
	}
	return v.checkTargetsComplete()
}

// listClusters lists the clusters that have a marker or a barrier; if there is none, the configured one.
func (v *Informer) listClusters() []string {
	known := map[string]bool{}
	for s := range v.markers {
		known[s.cluster] = true
	}
	for cluster := range v.proofs {
		known[cluster] = true
	}
	if len(known) == 0 {
		known[v.cfg.Cluster] = true
	}
	return slices.Sorted(maps.Keys(known)) // Sorted, so that errors are the same each time.
}

// Keys lists the names of all objects, tombstones included. A name may occur twice.
func (v *Informer) Keys() []event.Key {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var keys []event.Key
	for _, t := range v.tables {
		keys = t.appendKeys(keys)
	}
	return keys
}

// HasLive reports whether a live object has this name.
func (v *Informer) HasLive(k event.Key) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	t, ok := v.tableOf(k.GroupResource)
	return ok && t.hasLive(k)
}

// tableOf returns the table of a kind. All kinds of targets share one.
func (v *Informer) tableOf(of event.GroupResource) (t kindTable, ok bool) {
	if of.Target {
		of = kinds.AllTargets()
	}
	t, ok = v.tables[of]
	return t, ok
}

// WithCurrentEpoch returns an answer of the API server as a change of the newest epoch, because the API server knows no epochs.
func (v *Informer) WithCurrentEpoch(answer event.Change) event.Change {
	v.mu.RLock()
	defer v.mu.RUnlock()
	newest := v.epochs[answer.Key.Cluster]
	if order, ok := event.CompareEpochs(newest, answer.Epoch); ok && order > 0 {
		answer.Epoch = newest
	}
	return answer
}

// KeysPublishedSince lists the objects whose newest change was published, or written by this process, after a time,
// tombstones included.
func (v *Informer) KeysPublishedSince(then time.Time) []event.Key {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var keys []event.Key
	for _, t := range v.tables {
		keys = t.appendPublishedSince(keys, then)
	}
	return keys
}

const (
	// pause is the wait between two attempts to read the stream.
	pause = 250 * time.Millisecond
	// expireInterval is the time between two removals of expired tombstones.
	expireInterval = time.Minute
	// reportAfter is the time after which an incomplete view is logged. reportInterval is the time between two checks.
	reportAfter, reportInterval = 10 * time.Second, time.Second
)

// Run feeds the view until ctx ends. It survives restarts of the server, and a stream that is deleted and created
// again.
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
		if ctx.Err() == nil && !errors.Is(err, errReplaced) && err.Error() != logged { // A replaced stream is read again without a warning.
			v.cfg.Log.WarnContext(ctx, "feed of the view interrupted; reading again", slog.Any("error", err))
			logged = err.Error()
		}
		backoff.Sleep(ctx, pause)
	}
	return nil
}

// reportIncompleteLoop logs until ctx ends once the view has been incomplete for reportAfter, and once it is complete again.
func (v *Informer) reportIncompleteLoop(ctx context.Context) {
	complete, reported := time.Now(), false
	for backoff.Sleep(ctx, reportInterval) {
		err := v.IncompleteErr()
		switch {
		case err == nil && reported:
			v.cfg.Log.InfoContext(ctx, "the view is complete again", slog.Duration("after", time.Since(complete)))
			complete, reported = time.Now(), false
		case err == nil:
			complete = time.Now()
		case !reported && time.Since(complete) >= reportAfter:
			v.cfg.Log.WarnContext(ctx, "the view is incomplete; the service grants nothing", slog.Any("error", err))
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
