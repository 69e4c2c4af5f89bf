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

// Result is the outcome of a reconciliation for one object.
type Result = results.Result

// Request is one reconciliation of one key. A reconciler reads its task from the request and reports its results to
// it. A Request is safe for concurrent use.
type Request[K comparable] struct {
	Key K
	// Resync requests a comparison with the backend, and the repair of changes that others made.
	Resync bool

	view *informer.Informer
	// engine is nil in a request that [NewRequest] made.
	engine *engine[K]
	term   uint64

	mu sync.Mutex
	// writes counts the writes to a backend, by the object that caused them.
	writes map[event.Key]int
	// results holds the last report of each object. place holds the index of each object in results.
	results []Result
	place   map[event.Key]int
	// enqueued holds the further keys to reconcile, with their priorities.
	enqueued map[K]int
	// again is the delay after which the key is reconciled again; zero means that it is not.
	again time.Duration
	// later is the reason to reconcile the key again with backoff; nil means that it is not.
	later error
}

// UntypedRequest is the part of a [Request] that does not depend on the type of its key.
type UntypedRequest interface {
	Term() uint64
	RequeueOnChange(objects ...event.Key) (again bool)
	RecordWrite(ctx context.Context, cause, now event.Change) error
	CountWrite(cause event.Change)
	RequeueAfter(after time.Duration)
	Report(c event.Change, outcome eventv1.Outcome, message string)
	RequeueWithBackoff(why error)
}

// NewRequest returns a request that does not belong to a running controller. Use it for writes outside of a controller
// and in tests of reconcilers.
func NewRequest[K comparable](v *informer.Informer, key K, resync bool) *Request[K] {
	return &Request[K]{
		Key: key, Resync: resync, view: v,
		writes: map[event.Key]int{}, place: map[event.Key]int{}, enqueued: map[K]int{},
	}
}

// Term returns the number of the term in which the reconciliation runs. Between two terms another replica may have
// been the leader.
func (p *Request[K]) Term() uint64 { return p.term }

// RequeueOnChange makes the next change of each object enqueue this key, even if AffectedKeys does not list the key for
// the object. Use it for objects that the reconciliation found only by following references: a reference may have
// pointed nowhere when AffectedKeys was called.
//
// If added is true, at least one object did not enqueue this key before. The caller must read the objects again,
// because they may have changed in between.
func (p *Request[K]) RequeueOnChange(objects ...event.Key) (added bool) {
	return p.engine != nil && p.engine.addRoutes(p.Key, objects)
}

// RecordWrite stores the API server's answer to a write in the informer and counts the write. cause is the object on
// whose behalf the write was made; the new state continues its trace.
//
// The change with the new state will not enqueue this key. So the write must be a compare-and-swap on the state that
// the reconciliation decided from, or the reconciliation must decide again from the new state. Otherwise it would miss
// concurrent changes by other writers.
func (p *Request[K]) RecordWrite(ctx context.Context, cause, written event.Change) error {
	written = p.view.WithCurrentEpoch(written)
	written.Traceparent, written.PublishedAt = cause.Traceparent, time.Now()
	if !written.Deleted {
		written.ObservedAt = cause.ObservedAt
	}
	p.CountWrite(cause)
	// If the generation of the same object changed, another writer changed it too. A deletion is no echo, because
	// other objects under the same key may wait for it.
	if p.engine != nil && !written.Deleted && (cause.Key != written.Key || cause.Generation == written.Generation) {
		p.engine.echoes.expectEcho(written, p.Key)
	}
	if err := p.view.Apply(ctx, written); err != nil {
		return fmt.Errorf("storing %s: %w", written.Key, err)
	}
	return nil
}

// CountWrite counts a write to a backend other than the API server. cause is the object on whose behalf the write was
// made.
func (p *Request[K]) CountWrite(cause event.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes[cause.Key]++
}

// RequeueAfter requests another reconciliation of this key after a delay, if this one succeeds. The shortest requested
// delay counts.
func (p *Request[K]) RequeueAfter(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.again == 0 || after < p.again {
		p.again = after
	}
}

// RequeueWithBackoff requests another reconciliation of this key after a delay that grows each time. Use it for
// obstacles whose end no change reports, such as a missing permission. The messages of this reconciliation count as
// done.
func (p *Request[K]) RequeueWithBackoff(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.later = why
}

// ShouldYield reports whether all workers are busy while keys of a higher priority wait. A long reconciliation should
// then enqueue its own key and return.
func (p *Request[K]) ShouldYield() bool {
	e := p.engine
	if e == nil || !e.queue.hasWaitingAbove(e.priorityOf(p.Key)) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running) >= e.cfg.Workers
}

// Report sets the outcome of an object. The last report for an object counts.
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

// Enqueue requests the reconciliation of further keys after this one. The messages that requested this reconciliation
// also wait for these keys, unless it fails.
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
