package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/results"
)

// Result is the outcome of a pass for one object.
type Result = results.Result

// Request is one reconciliation of one key. A reconciler reads its request and reports its results here. It is safe for
// concurrent use.
type Request[K comparable] struct {
	Key K
	// Resync requests a comparison with the backend, and the repair of changes that others made.
	Resync bool

	view *informer.Informer
	// engine is nil in a pass that no engine started.
	engine *engine[K]
	term   uint64

	mu sync.Mutex
	// writes counts calls that changed a backend, by the object that caused them.
	writes map[event.Key]int
	// results holds the last report of each object. place holds their indexes.
	results []Result
	place   map[event.Key]int
	// enqueued holds further keys with their priorities.
	enqueued map[K]int
	// again is the delay after which the key runs again; zero means never.
	again time.Duration
	// later is the reason to run the key again after a growing delay.
	later error
}

// UntypedRequest is the part of a [Request] that does not depend on the type of its key.
type UntypedRequest interface {
	Term() uint64
	Watch(objects ...event.Key) (again bool)
	RecordWrite(ctx context.Context, cause, now event.Change) error
	CountWrite(cause event.Change)
	RequeueAfter(after time.Duration)
	Report(c event.Change, outcome eventv1.Outcome, message string)
	RequeueWithBackoff(why error)
}

// NewRequest returns a pass that no engine started. It serves writes outside of an engine, and tests of reconcilers.
func NewRequest[K comparable](v *informer.Informer, key K, resync bool) *Request[K] {
	return &Request[K]{
		Key: key, Resync: resync, view: v,
		writes: map[event.Key]int{}, place: map[event.Key]int{}, enqueued: map[K]int{},
	}
}

// Term identifies the term in which the pass runs. Between two terms another replica may have been active.
func (p *Request[K]) Term() uint64 { return p.term }

// Watch makes the next change of each object wake this key, even if the object does not touch it then. It serves passes
// that read objects which touch the key only through others: a reference may lead nowhere when the engine calls Keys.
// If again is true, an object was not watched before; read the objects once more, because they may have changed in
// between.
func (p *Request[K]) Watch(objects ...event.Key) (again bool) {
	return p.engine != nil && p.engine.addRoutes(p.Key, objects)
}

// RecordWrite stores the answer of the API server to a write on behalf of cause in the view, and counts the write. The new
// state continues the trace of cause.
//
// The change with the new state will wake other keys only. So the write must be a compare-and-swap on the state that
// the pass decided from, or the pass must decide again from the new state. Otherwise it would miss changes that others
// made meanwhile.
func (p *Request[K]) RecordWrite(ctx context.Context, cause, now event.Change) error {
	now = p.view.WithCurrentEpoch(now)
	now.Traceparent, now.PublishedAt = cause.Traceparent, time.Now()
	if !now.Deleted {
		now.ObservedAt = cause.ObservedAt
	}
	p.CountWrite(cause)
	// A new generation of the same object is the change of another writer, too. Other objects under the same key wait
	// for a deletion.
	if p.engine != nil && !now.Deleted && (cause.Key != now.Key || cause.Generation == now.Generation) {
		p.engine.echoes.expectEcho(now, p.Key)
	}
	if err := p.view.Apply(ctx, now); err != nil {
		return fmt.Errorf("taking in %s: %w", now.Key, err)
	}
	return nil
}

// CountWrite counts a call on behalf of cause that changed a backend other than the API server.
func (p *Request[K]) CountWrite(cause event.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes[cause.Key]++
}

// RequeueAfter requests another pass of this key after a delay, if this pass succeeds. The shortest requested delay counts.
func (p *Request[K]) RequeueAfter(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.again == 0 || after < p.again {
		p.again = after
	}
}

// RequeueWithBackoff requests this key again after a delay that grows each time. It serves obstacles that no change
// reports, such as a missing right. The messages of this pass are done.
func (p *Request[K]) RequeueWithBackoff(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.later = why
}

// ShouldYield reports whether all workers are busy while keys of a higher priority wait. A long pass that may be
// interrupted then enqueues its own key and returns.
func (p *Request[K]) ShouldYield() bool {
	e := p.engine
	if e == nil || !e.queue.hasWaitingAbove(e.priorityOf(p.Key)) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running) >= e.cfg.Workers
}

// Report sets the outcome of an object. The last report of the pass counts.
func (p *Request[K]) Report(c event.Change, outcome eventv1.Outcome, message string) {
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

// Enqueue requests further keys, with a priority, after this pass. The messages of this pass wait for these keys, too,
// unless the pass fails.
func (p *Request[K]) Enqueue(priority int, keys ...K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		if has, ok := p.enqueued[key]; !ok || has < priority {
			p.enqueued[key] = priority
		}
	}
}

// Results lists the outcomes that were reported so far.
func (p *Request[K]) Results() []Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	results := make([]Result, len(p.results))
	for i, r := range p.results {
		r.Writes = p.writes[r.Change.Key]
		results[i] = r
	}
	return results
}
