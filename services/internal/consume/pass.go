package consume

import (
	"context"
	"fmt"
	"sync"
	"time"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/view"
)

// Result is what a pass made of one object.
type Result = publish.Result

// Pass is one reconciliation of one key: what is asked for, and where it is told what was done.
// It may be used by several goroutines.
type Pass[K comparable] struct {
	Key K
	// Resync asks to read the backend and repair what was changed behind our back.
	Resync bool

	view *view.View
	// engine is nil in a pass that none asked for.
	engine *engine[K]
	turn   uint64

	mu sync.Mutex
	// writes counts calls that changed something, by the object on whose behalf.
	writes map[event.Key]int
	// results are the last reports, in the order of the first of each object; place is where.
	results []Result
	place   map[event.Key]int
	// enqueued are further keys with their priorities.
	enqueued map[K]int
	// again is when the key is to come again by itself; zero if it need not.
	again time.Duration
	// later is why the key is to be tried again.
	later error
}

// Reporter is the part of a [Pass] that has nothing to do with its key.
type Reporter interface {
	Turn() uint64
	Watch(objects ...event.Key) (again bool)
	Wrote(ctx context.Context, cause, now event.Change) error
	Count(cause event.Change)
	Again(after time.Duration)
	Report(c event.Change, outcome eventv1.Outcome, message string)
	Later(why error)
}

// NewPass makes a pass that no engine asked for: for what is written beside one, and for tests of
// reconcilers.
func NewPass[K comparable](v *view.View, key K, resync bool) *Pass[K] {
	return &Pass[K]{
		Key: key, Resync: resync, view: v,
		writes: map[event.Key]int{}, place: map[event.Key]int{}, enqueued: map[K]int{},
	}
}

// Turn tells passes of one turn of this replica from those of others: in between, another one may have been at work.
func (p *Pass[K]) Turn() uint64 { return p.turn }

// Watch makes sure that the next event of each object wakes this key, whatever the object touches
// by then. It is for passes that decide from objects which touch the key by way of others only:
// a reference may lead nowhere when the engine asks for its keys. When again is true, somebody
// was not watched before; read the objects once more, for they may have changed in between.
func (p *Pass[K]) Watch(objects ...event.Key) (again bool) {
	return p.engine != nil && p.engine.watch(p.Key, objects)
}

// Wrote takes into the view what the API server answered to a write on behalf of cause, which
// it counts. The new state is part of the same story, and so of its trace.
//
// The event that tells of the new state wakes other keys only. So the write must be one by
// compare-and-swap on the state that the pass decided from, or the pass must decide again from
// the new one: what somebody else changed meanwhile would be overlooked.
func (p *Pass[K]) Wrote(ctx context.Context, cause, now event.Change) error {
	now = p.view.Dated(now)
	now.Traceparent, now.PublishedAt = cause.Traceparent, time.Now()
	if !now.Deleted {
		now.ObservedAt = cause.ObservedAt
	}
	p.Count(cause)
	// Another generation of the same object is somebody else's, too. And that an object is gone is
	// what others under the same key wait for.
	if p.engine != nil && !now.Deleted && (cause.Key != now.Key || cause.Generation == now.Generation) {
		p.engine.echoes.expect(now, p.Key)
	}
	if err := p.view.Apply(ctx, now); err != nil {
		return fmt.Errorf("taking in %s: %w", now.Key, err)
	}
	return nil
}

// Count counts a call on behalf of cause that changed a backend other than the API server.
func (p *Pass[K]) Count(cause event.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes[cause.Key]++
}

// Again asks for another pass of this key after a while, if this one succeeds: the shortest that is asked for.
func (p *Pass[K]) Again(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.again == 0 || after < p.again {
		p.again = after
	}
}

// Outranked reports whether all workers are busy, and keys of a higher priority than that of this
// one wait for them. A pass with much to do that may wait leaves the rest then, and enqueues its key.
func (p *Pass[K]) Outranked() bool {
	e := p.engine
	if e == nil || !e.queue.outranks(e.priority(p.Key)) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running) >= e.cfg.Workers
}

// Report says what became of an object. What was reported last counts, at the end of the pass.
func (p *Pass[K]) Report(c event.Change, outcome eventv1.Outcome, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	result := Result{Change: c, Outcome: outcome, Message: message}
	if i, ok := p.place[c.Key]; ok {
		p.results[i] = result
		return
	}
	p.place[c.Key] = len(p.results)
	p.results = append(p.results, result)
}

// Enqueue asks for further keys, of the given priority, after this pass. The messages that this
// pass is for are not done before those keys are, too, unless the pass fails.
func (p *Pass[K]) Enqueue(priority int, keys ...K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		if has, ok := p.enqueued[key]; !ok || has < priority {
			p.enqueued[key] = priority
		}
	}
}

// Results are what has been reported so far.
func (p *Pass[K]) Results() []Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	results := make([]Result, len(p.results))
	for i, r := range p.results {
		r.Writes = p.writes[r.Change.Key]
		results[i] = r
	}
	return results
}
