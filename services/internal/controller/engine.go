package controller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/leader"
	"github.com/entail-dev/entail/services/internal/results"
	"github.com/entail-dev/entail/services/internal/tracing"
)

// engine holds the keys that wait for reconciliation and the messages that wait for keys.
type engine[K comparable] struct {
	cfg        Config
	reconciler Reconciler[K]
	queue      priorityQueue[K]
	backoff    backoff.Backoff
	metrics    metrics
	results    *results.Publisher
	echoes     ownWriteEchoes
	elector    *leader.Elector
	unsettled  unackedMessages
	// observing counts the running calls of a DriftDetector and the running takeovers.
	observing sync.WaitGroup

	mu sync.Mutex
	// requests holds, for each waiting key, why it must be reconciled.
	requests map[K]*pendingRequest
	// running holds the requests that are being reconciled.
	running map[K]*pendingRequest
	// routes holds the keys that each object affected when it was last routed.
	routes map[event.Key][]K
	// retries holds the keys whose last reconciliation failed.
	retries  map[K]retryState
	refusals refusalLog
	// draining means that no new reconciliation starts.
	draining bool
}

// pendingRequest holds why a key must be reconciled: the messages that wait for the key, or none if the key was
// enqueued alone.
type pendingRequest struct {
	deliveries []*delivery
	resync     bool
	// gone holds objects that are no longer in the informer. Their routes to the key are removed before its
	// reconciliation, which may add them again with [Request.RequeueOnChange].
	gone map[event.Key]bool
}

func (r *pendingRequest) markObjectGone(object event.Key) {
	if r.gone == nil {
		r.gone = map[event.Key]bool{}
	}
	r.gone[object] = true
}

// traceParents returns the trace of the first change that requested this reconciliation, and the traces of the other
// changes.
func (r *pendingRequest) traceParents() (first string, others []string) {
	for _, d := range r.deliveries {
		switch is := d.change.Traceparent; {
		case first == "":
			first = is
		case is != first && !slices.Contains(others, is) && len(others) < maxLinks:
			others = append(others, is)
		}
	}
	return first, others
}

func newEngine[K comparable](cfg Config, reconciler Reconciler[K]) *engine[K] {
	e := &engine[K]{
		cfg: cfg, reconciler: reconciler,
		backoff:   backoff.Backoff{Min: cfg.MinDelay, Max: cfg.MaxDelay},
		results:   results.New(cfg.JS, cfg.Service.Name, cfg.Elector.IsLeader, cfg.Log),
		echoes:    ownWriteEchoes{cache.NewLRUExpireCache(maxEchoes)},
		refusals:  newRefusalLog(),
		elector:   cfg.Elector,
		unsettled: unackedMessages{open: map[*delivery]struct{}{}},
		requests:  map[K]*pendingRequest{}, running: map[K]*pendingRequest{}, routes: map[event.Key][]K{}, retries: map[K]retryState{},
	}
	e.queue = newPriorityQueue(e.priorityOf)
	e.metrics = newMetrics(cfg.Metrics, cfg.Service.Name, e.queue.keys.Len)
	cfg.View.OnReload(func() { e.enqueueAll(false) })
	return e
}

func (e *engine[K]) priorityOf(key K) int {
	if p, ok := e.reconciler.(Prioritizer[K]); ok {
		return p.Priority(key)
	}
	return 0
}

// enqueueAll enqueues the keys of all objects in the informer or in routes, each key once.
func (e *engine[K]) enqueueAll(resync bool) {
	known, touched := map[event.Key]bool{}, map[K]bool{}
	touch := func(keys []K) {
		for _, key := range keys {
			touched[key] = true
		}
	}
	for _, object := range e.cfg.View.Keys() {
		known[object] = true
		// updateRoute also returns the earlier keys of the object, which may not have been reconciled yet.
		touch(e.updateRoute(object))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for object, keys := range e.routes {
		if known[object] {
			continue
		}
		touch(keys)
		for _, key := range keys {
			e.ensurePending(key).markObjectGone(object)
		}
	}
	e.enqueueKeys(slices.Collect(maps.Keys(touched)), resync)
}

// clockSlack is added to a computed bound. It covers the lag of an informer, requests in flight at the start or end of
// a term, and clock differences.
const clockSlack = time.Minute

// enqueueRecentlyPublished enqueues, for a comparison with the backend, the keys of recently changed objects. The
// previous leader's last requests may take effect after this replica's first reconciliations and overwrite their
// result.
//
// Such a request was planned from changes that are older than the request by at most Config.Deadline. For an object
// without a later change, both replicas decide the same, so the late request does no harm.
//
// The results that the previous leader published give no better bound, because they do not cover a reconciliation that
// was still running.
func (e *engine[K]) enqueueRecentlyPublished() {
	touched := map[K]bool{}
	for _, object := range e.cfg.View.KeysPublishedSince(time.Now().Add(-e.cfg.Deadline - clockSlack)) {
		for _, key := range e.updateRoute(object) {
			touched[key] = true
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.enqueueKeys(slices.Collect(maps.Keys(touched)), true)
}

// enqueueKeys enqueues keys without messages. The caller holds the lock.
func (e *engine[K]) enqueueKeys(keys []K, resync bool) {
	for _, key := range keys {
		e.enqueueKey(key, e.priorityOf(key), nil, resync)
	}
}

// enqueueDelivery makes d wait for keys and reports whether d waits for any.
//
// If one of the keys wrote the state in d itself, d does not enqueue that key. If the key is running, d waits for the
// result. If the key's last reconciliation failed, d enqueues the key like any other message.
func (e *engine[K]) enqueueDelivery(d *delivery, keys []K) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if writer, ok := e.echoes.takeEcho(d); ok {
		key, _ := writer.(K)
		_, failed := e.retries[key]
		if r := e.running[key]; r != nil && slices.Contains(keys, key) {
			r.deliveries = append(r.deliveries, d)
			d.openKeys++
		}
		if !failed || d.openKeys > 0 {
			keys = slices.DeleteFunc(keys, func(k K) bool { return k == key })
		}
	}
	d.openKeys += len(keys)
	for _, key := range keys {
		e.enqueueKey(key, e.priorityOf(key), []*delivery{d}, d.replay)
	}
	return d.openKeys > 0
}

// enqueueFollowUps enqueues the keys that a reconciliation requested and makes its messages wait for them. After a
// failure the messages do not wait, because they are delivered again anyway.
func (e *engine[K]) enqueueFollowUps(p *Request[K], r *pendingRequest, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var waiting []*delivery
	if err == nil {
		waiting = r.deliveries
	}
	for key, priority := range p.enqueued {
		e.enqueueKey(key, priority, waiting, false)
		for _, d := range waiting {
			d.openKeys++
		}
	}
}

// enqueueKey enqueues key and adds the messages that wait for it, if any. The caller holds the lock.
func (e *engine[K]) enqueueKey(key K, priority int, deliveries []*delivery, resync bool) {
	r := e.ensurePending(key)
	r.deliveries = append(r.deliveries, deliveries...)
	r.resync = r.resync || resync
	e.queue.addKey(priority, key)
}

// ensurePending returns the pending request of a key, and creates one if there is none. The caller holds the lock.
func (e *engine[K]) ensurePending(key K) *pendingRequest {
	r, ok := e.requests[key]
	if !ok {
		r = &pendingRequest{}
		e.requests[key] = r
	}
	return r
}

// runWorker reconciles keys until the queue is shut down.
func (e *engine[K]) runWorker(ctx context.Context) {
	for {
		key, shutdown := e.queue.keys.Get()
		if shutdown {
			return
		}
		e.reconcileKey(ctx, key)
		e.queue.keys.Done(key)
	}
}

// maxLinks bounds the traces that one reconciliation links to.
const maxLinks = 16

func (e *engine[K]) reconcileKey(ctx context.Context, key K) {
	term, load, ours := e.awaitTerm(ctx)
	// A reconciliation may read the informer at any time. Once the informer loads the stream again, it may show what a
	// restored stream holds.
	ctx = leader.WithCheck(ctx, func() error { return e.cfg.View.CheckLoad(load) })
	e.reconcileIfLeader(ctx, key, term, ours)
}

// reconcileIfLeader reconciles key if this replica is the leader. Otherwise it returns the messages to the server.
func (e *engine[K]) reconcileIfLeader(ctx context.Context, key K, term uint64, ours bool) {
	e.mu.Lock()
	r, ok := e.requests[key]
	delete(e.requests, key)
	if !ok {
		e.mu.Unlock()
		return
	}
	e.running[key] = r
	for object := range r.gone {
		e.removeRoute(object, key)
	}
	draining := e.draining
	first, others := r.traceParents()
	e.mu.Unlock()
	ctx = tracing.ContinueTrace(ctx, first)
	if draining || !ours {
		e.settleKeyAndMessages(ctx, key, r, leader.ErrNotLeader)
		return
	}
	p := NewRequest(e.cfg.View, key, r.resync)
	p.engine, p.term = e, term
	err := e.callReconciler(leader.WithTerm(ctx, term), p, others)
	e.finishReconcile(ctx, p, r, err)
}

// finishReconcile reports the results of a reconciliation and settles its messages.
func (e *engine[K]) finishReconcile(ctx context.Context, p *Request[K], r *pendingRequest, err error) {
	results := p.Results()
	for _, result := range results {
		e.results.Report(ctx, result)
	}
	e.markReportedDeliveries(r, results)
	e.metrics.countReconcile(p.writes, err)
	e.enqueueFollowUps(p, r, err)
	if err == nil && p.later != nil {
		e.settleWithRequeue(ctx, p.Key, r, p.later)
		return
	}
	e.settleKeyAndMessages(ctx, p.Key, r, err)
	if err == nil && p.again > 0 {
		e.markPending(p.Key, false)
		e.queue.keys.AddAfter(p.Key, p.again)
	}
}
