// Package view keeps the newest state of every object of some kinds in memory, typed
// and indexed, fed from the bus. It is what a service decides from.
//
// A view is complete once it holds, for every kind, all that the watcher's snapshot
// marker speaks of. Before that nobody may conclude from an absence.
package view

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

// ErrIncomplete is returned by [View.Complete] while a snapshot is missing.
var ErrIncomplete = errors.New("view is incomplete")

// Config of a view. JS and Log are required, Fetch where objects may be too large for the bus.
type Config struct {
	JS jetstream.JetStream
	// Service is whose view it is.
	Service string
	// Cluster is the one whose objects the view holds; empty means all.
	Cluster string
	// Fetch reads an object that the bus could not carry, as JSON; nil when it is gone.
	Fetch func(context.Context, event.Key) ([]byte, error)
	// Blank has what cannot be decoded in the place of what it was before, without a value: for who says yes by what is there, and
	// has no consumer that makes it a dead letter.
	Blank bool
	Log   *slog.Logger
}

// View holds tables that change together. Create one with [New], declare its
// tables with [Register], then [View.Run] it.
type View struct {
	cfg Config

	// applying is held while a change is taken in and told of.
	applying sync.Mutex
	// decoding is shared by those who bring the same state at the same time, of the same load: feed and consumer, as a rule.
	decoding singleflight.Group
	loads    atomic.Uint64

	mu     sync.RWMutex
	tables map[event.GroupResource]table
	// named are the kinds that no marker speaks of.
	named map[event.GroupResource]bool
	// incarnation is the creation time of the stream that was loaded; "" before the first load.
	incarnation string
	// read is when the server was asked for that stream, by its own clock.
	read time.Time
	// position is the last sequence seen of that stream, changed that of the last change.
	position, changed uint64
	// targeted are those of the last changes of targets, by their kinds.
	targeted map[snapshot]uint64
	// brought counts what the feed has brought, or tried to take in once more.
	brought atomic.Uint64
	// heard is the last moment of which the view is known to hold all that the stream did then.
	heard moment
	// beats are the last heartbeats, by cluster, and clock is that of who dates them. That there is a new one, beaten tells.
	beats   map[string]progress
	beaten  chan struct{}
	clock   clock
	markers map[snapshot]marker
	// marked is true once a feed has read all markers that there were when it began.
	marked bool
	// epochs are the newest of each cluster.
	epochs map[string]string
	// loading is true until a feed has read all that the stream held when it began.
	loading bool
	// obstacle is why the feed cannot take in what comes next.
	obstacle error
	onBegin  []func()
	onLoad   []func()
	onReload []func()
	onChange []func(event.Key)
	onTarget []func(event.GroupResource)
}

// snapshot is what a marker speaks of: the objects of a kind in a cluster.
type snapshot struct {
	cluster string
	kind    event.GroupResource
}

// has says whether an object is of it; an empty cluster is any.
func (s snapshot) has(k event.Key) bool {
	return k.GroupResource == s.kind && (s.cluster == "" || s.cluster == k.Cluster)
}

func (s snapshot) String() string {
	if s.cluster == "" {
		return s.kind.String()
	}
	return fmt.Sprintf("%s in cluster %q", s.kind, s.cluster)
}

// marker is the newest snapshot marker of a kind in a cluster.
type marker struct {
	message *eventv1.SnapshotMarker
	// sequence tells markers apart.
	sequence uint64
	// written is when the server took it.
	written time.Time
	// counted means that the view's objects were counted against it; told, of targets, that who wants to know was told of it.
	counted, told bool
}

// New makes an empty view.
func New(cfg Config) *View {
	return &View{
		cfg: cfg, tables: map[event.GroupResource]table{}, named: map[event.GroupResource]bool{},
		markers: map[snapshot]marker{}, targeted: map[snapshot]uint64{}, epochs: map[string]string{},
		beats: map[string]progress{}, beaten: make(chan struct{}, 1),
	}
}

// Kinds are those that the view has tables of.
func (v *View) Kinds() []event.GroupResource { return slices.Collect(maps.Keys(v.tables)) }

// OnReload calls f whenever the view was loaded anew, when objects may have
// vanished without a deletion. Call it before [View.Run].
func (v *View) OnReload(f func()) { v.onReload = append(v.onReload, f) }

// OnBegin calls f whenever the stream is about to be read from its begin: what sinks handed on before is void. f must be quick, and
// ask nothing of the view. Call it before [View.Run].
func (v *View) OnBegin(f func()) { v.onBegin = append(v.onBegin, f) }

// OnLoad calls f whenever tables show what was loaded, before the view counts as complete: for what is
// worked out from all objects, and then kept by [View.OnChange]. Until it returns there are no changes.
// Call it before [View.Run].
func (v *View) OnLoad(f func()) { v.onLoad = append(v.onLoad, f) }

// Between calls f when tables, and those who were told of changes, agree: f must be quick, and apply nothing.
func (v *View) Between(f func()) {
	v.applying.Lock()
	defer v.applying.Unlock()
	f()
}

// OnChange calls f after each change that was taken in, one after the other, and before
// anybody's [View.Apply] of that change returns. It must be quick, and apply nothing. Call
// OnChange before [View.Run].
func (v *View) OnChange(f func(event.Key)) { v.onChange = append(v.onChange, f) }

// Complete is nil when the snapshot of every kind that has one is in the view, of each cluster that has a watcher
// on the bus; else it wraps [ErrIncomplete] and says what is missing.
func (v *View) Complete() error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	err := v.complete()
	if err != nil && v.obstacle != nil {
		err = fmt.Errorf("%w; the next change cannot be taken in: %w", err, v.obstacle)
	}
	return err
}

// complete is [View.Complete] but for what the feed waits for; the caller holds the lock.
func (v *View) complete() error {
	if v.incarnation == "" || v.loading || !v.marked {
		return fmt.Errorf("%w: the stream of changes has not been read", ErrIncomplete)
	}
	if old := bootclock.Since(v.heard.at); old > maxUnverified {
		return fmt.Errorf("%w: nothing was heard of the stream of changes for %s", ErrIncomplete, old.Round(time.Second))
	}
	for _, cluster := range v.clusters() {
		for kind := range v.tables {
			of := snapshot{cluster, kind}
			if kind == kinds.Targets() { // Which there are, the marker of those that register them comes after.
				continue
			}
			switch m := v.markers[of]; {
			case v.named[kind]:
			case m.message.GetStream() != v.incarnation:
				return fmt.Errorf("%w: no snapshot of %s on the bus; does the watcher run, and follow this kind?", ErrIncomplete, of)
			case m.message.GetLastSequence() > v.position:
				return fmt.Errorf("%w: snapshot of %s read up to %d of %d", ErrIncomplete, of, v.position, m.message.GetLastSequence())
			}
		}
	}
	return v.targetsComplete()
}

// clusters are those of which something was heard; while there is none, one that nobody knows.
func (v *View) clusters() []string {
	known := map[string]bool{}
	for s := range v.markers {
		known[s.cluster] = true
	}
	for cluster := range v.beats {
		known[cluster] = true
	}
	if len(known) == 0 {
		known[v.cfg.Cluster] = true
	}
	return slices.Sorted(maps.Keys(known)) // So that the same is said every time.
}

// Keys lists the names of all objects held, deletions included. A name may come twice.
func (v *View) Keys() []event.Key {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var keys []event.Key
	for _, t := range v.tables {
		keys = t.appendKeys(keys)
	}
	return keys
}

// Lives reports whether an object of this name is alive.
func (v *View) Lives(k event.Key) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	t, ok := v.table(k.GroupResource)
	return ok && t.lives(k)
}

// Size is how many objects of a kind are alive, in all clusters.
func (v *View) Size(of event.GroupResource) int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if t, ok := v.table(of); ok {
		return int(t.size(snapshot{kind: of}))
	}
	return 0
}

// table finds that of a kind; targets are in one, whatever their kinds.
func (v *View) table(of event.GroupResource) (t table, ok bool) {
	if of.Target {
		of = kinds.Targets()
	}
	t, ok = v.tables[of]
	return t, ok
}

// Dated is what the API server answered as a change of the newest epoch: the API server knows of none.
func (v *View) Dated(answer event.Change) event.Change {
	v.mu.RLock()
	defer v.mu.RUnlock()
	newest := v.epochs[answer.Key.Cluster]
	if order, ok := event.CompareEpochs(newest, answer.Epoch); ok && order > 0 {
		answer.Epoch = newest
	}
	return answer
}

// PublishedSince lists the objects whose newest change came on the bus, or was written here, after a
// time, deletions included.
func (v *View) PublishedSince(then time.Time) []event.Key {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var keys []event.Key
	for _, t := range v.tables {
		keys = t.appendPublished(keys, then)
	}
	return keys
}

const (
	// pause is the wait between two attempts to read the stream.
	pause = 250 * time.Millisecond
	// expireInterval is how often deletions are forgotten that the bus no longer keeps either.
	expireInterval = time.Minute
)

// Run feeds the view until ctx ends. It survives restarts of the server and a stream
// that was deleted and made anew.
func (v *View) Run(ctx context.Context) error {
	var expiring sync.WaitGroup
	expiring.Go(func() { v.expire(ctx) })
	defer expiring.Wait()
	for ctx.Err() == nil {
		err := v.feed(ctx)
		if ctx.Err() == nil && !errors.Is(err, errReplaced) { // Reading again is then all there is to it.
			v.cfg.Log.WarnContext(ctx, "feed of the view interrupted; reading again", slog.Any("error", err))
		}
		backoff.Sleep(ctx, pause)
	}
	return nil
}

// expire forgets deletions in time, until ctx ends.
func (v *View) expire(ctx context.Context) {
	for backoff.Sleep(ctx, expireInterval) {
		v.mu.Lock()
		for _, t := range v.tables {
			t.expire(time.Now())
		}
		v.mu.Unlock()
	}
}
