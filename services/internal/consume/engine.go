package consume

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/tracing"
)

// engine knows which keys wait to be reconciled, and which messages wait for them.
type engine[K comparable] struct {
	cfg        Config
	reconciler Reconciler[K]
	queue      queue[K]
	backoff    backoff.Backoff
	metrics    metrics
	results    *publish.Results
	echoes     echoes
	place      *Place
	unsettled  unsettled
	// observing are the observations in progress.
	observing sync.WaitGroup

	mu sync.Mutex
	// requests are why each key is to be reconciled, since its last reconciliation began.
	requests map[K]*request
	// running are the requests that are being reconciled.
	running map[K]*request
	// routes is what each object touched when it was last looked at.
	routes map[event.Key][]K
	// retries holds the keys whose last reconciliation failed.
	retries  map[K]retry
	refusals refusals
	// draining means that nothing new is begun.
	draining bool
}

// request is why a key is to be reconciled: messages, or just the key itself.
type request struct {
	deliveries []*delivery
	resync     bool
	// gone are objects that touched the key and that nobody holds any more: once it is reconciled they touch it no more, unless it
	// watches them.
	gone map[event.Key]bool
}

func (r *request) leaves(object event.Key) {
	if r.gone == nil {
		r.gone = map[event.Key]bool{}
	}
	r.gone[object] = true
}

// traceparents are those of the change that asked first, and of the others: what follows from a
// change comes after it.
func (r *request) traceparents() (first string, others []string) {
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
		results:   publish.NewResults(cfg.JS, cfg.Service.Name, cfg.Place.sure, cfg.Log),
		echoes:    echoes{cache.NewLRUExpireCache(maxEchoes)},
		refusals:  newRefusals(),
		place:     cfg.Place,
		unsettled: unsettled{open: map[*delivery]struct{}{}},
		requests:  map[K]*request{}, running: map[K]*request{}, routes: map[event.Key][]K{}, retries: map[K]retry{},
	}
	e.queue = newQueue(e.priority)
	e.metrics = newMetrics(cfg.Metrics, cfg.Service.Name, e.queue.keys.Len)
	cfg.View.OnReload(func() { e.everything(false) })
	return e
}

func (e *engine[K]) priority(key K) int {
	if p, ok := e.reconciler.(Prioritizer[K]); ok {
		return p.Priority(key)
	}
	return 0
}

// everything looks at all objects that the view or the engine has ever known: once at each key, however many objects touch it.
func (e *engine[K]) everything(resync bool) {
	known, touched := map[event.Key]bool{}, map[K]bool{}
	touch := func(keys []K) {
		for _, key := range keys {
			touched[key] = true
		}
	}
	for _, object := range e.cfg.View.Keys() {
		known[object] = true
		touch(e.route(object)) // What it touched before, too: nobody else may have looked at that yet.
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for object, keys := range e.routes {
		if known[object] {
			continue
		}
		touch(keys)
		for _, key := range keys {
			e.request(key).leaves(object)
		}
	}
	e.askAll(slices.Collect(maps.Keys(touched)), resync)
}

// slack is for how long a view may lag behind, and what a replica sent may take, both before and after the
// turn of another began; and for clocks that differ.
const slack = time.Minute

// lately looks thoroughly, once calls of the replica before us are over, at all that we may have decided
// before these came to pass. What such a call does was planned within the last pass, from what was on
// the bus by then: of what has not changed since, whether by others or by us, it does what we would.
//
// What the replica before us reported last is no such bound: of a pass that still lasts it says nothing. As with everything, a key
// is looked at once, however many objects touch it.
func (e *engine[K]) lately() {
	touched := map[K]bool{}
	for _, object := range e.cfg.View.PublishedSince(time.Now().Add(-e.cfg.Deadline - slack)) {
		for _, key := range e.route(object) {
			touched[key] = true
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.askAll(slices.Collect(maps.Keys(touched)), true)
}

// askAll requests keys for their own sake; the caller holds the lock.
func (e *engine[K]) askAll(keys []K, resync bool) {
	for _, key := range keys {
		e.ask(key, e.priority(key), nil, resync)
	}
}

// route tells which keys an object touches, or did when it was last looked at.
func (e *engine[K]) route(object event.Key) []K {
	now := union(e.reconciler.Keys(object), nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	touched := union(now, e.routes[object])
	if len(now) == 0 {
		delete(e.routes, object)
	} else {
		e.routes[object] = now
	}
	return touched
}

// watch makes objects touch key, and reports whether any did not before.
func (e *engine[K]) watch(key K, objects []event.Key) (again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, object := range objects {
		again = e.touch(object, key) || again
	}
	return again
}

// touch makes an object touch key, and reports whether it did not; the caller holds the lock.
func (e *engine[K]) touch(object event.Key, key K) bool {
	if slices.Contains(e.routes[object], key) {
		return false
	}
	e.routes[object] = append(slices.Clip(e.routes[object]), key)
	return true
}

// stay makes what a pass was to leave behind touch its key after all: it has to come again. The caller holds the lock.
func (e *engine[K]) stay(key K, asked *request) {
	for object := range asked.gone {
		e.touch(object, key)
	}
}

// leave makes an object touch key no more; the caller holds the lock.
func (e *engine[K]) leave(object event.Key, key K) {
	rest := slices.DeleteFunc(slices.Clone(e.routes[object]), func(k K) bool { return k == key })
	if e.routes[object] = rest; len(rest) == 0 {
		delete(e.routes, object)
	}
}

// union is first, and what of second is not in it, each once.
func union[K comparable](first, second []K) []K {
	all := make([]K, 0, len(first)+len(second))
	for _, keys := range [][]K{first, second} {
		for _, key := range keys {
			if !slices.Contains(all, key) {
				all = append(all, key)
			}
		}
	}
	return all
}

// attach makes d wait for keys, if there are any. The event of a state that one of them wrote
// itself is no news to that one: while its pass lasts, d just shares the fate of the pass, and
// once that has failed, d is as good as any message to bring the key back.
func (e *engine[K]) attach(d *delivery, keys []K) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if writer, ok := e.echoes.take(d); ok {
		key, _ := writer.(K)
		_, failed := e.retries[key]
		if r := e.running[key]; r != nil && slices.Contains(keys, key) {
			r.deliveries = append(r.deliveries, d)
			d.keys++
		}
		if !failed || d.keys > 0 {
			keys = slices.DeleteFunc(keys, func(k K) bool { return k == key })
		}
	}
	d.keys += len(keys)
	for _, key := range keys {
		e.ask(key, e.priority(key), []*delivery{d}, d.replay)
	}
	return d.keys > 0
}

// fanOut asks for the keys that a pass enqueued, and makes the messages that it was for wait for
// them, too. The messages of a pass that failed come again anyway.
func (e *engine[K]) fanOut(p *Pass[K], r *request, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var waiting []*delivery
	if err == nil {
		waiting = r.deliveries
	}
	for key, priority := range p.enqueued {
		e.ask(key, priority, waiting, false)
		for _, d := range waiting {
			d.keys++
		}
	}
}

// ask requests a reconciliation of key, for messages or for its own sake; the caller holds the lock.
func (e *engine[K]) ask(key K, priority int, deliveries []*delivery, resync bool) {
	r := e.request(key)
	r.deliveries = append(r.deliveries, deliveries...)
	r.resync = r.resync || resync
	e.queue.add(priority, key)
}

// request is that of a key; the caller holds the lock.
func (e *engine[K]) request(key K) *request {
	r, ok := e.requests[key]
	if !ok {
		r = &request{}
		e.requests[key] = r
	}
	return r
}

// work reconciles keys until the queue is shut down.
func (e *engine[K]) work(ctx context.Context) {
	for {
		key, shutdown := e.queue.keys.Get()
		if shutdown {
			return
		}
		e.reconcile(ctx, key)
		e.queue.keys.Done(key)
	}
}

// maxLinks bounds the traces that one pass is linked to.
const maxLinks = 16

func (e *engine[K]) reconcile(ctx context.Context, key K) {
	turn, ours := e.await(ctx)
	e.pass(ctx, key, turn, ours)
}

// pass makes what was requested of key, if the turn is ours.
func (e *engine[K]) pass(ctx context.Context, key K, turn uint64, ours bool) {
	e.mu.Lock()
	r, ok := e.requests[key]
	delete(e.requests, key)
	if !ok {
		e.mu.Unlock()
		return
	}
	e.running[key] = r
	for object := range r.gone {
		e.leave(object, key)
	}
	draining := e.draining
	first, others := r.traceparents()
	e.mu.Unlock()
	ctx = tracing.Continue(ctx, first)
	if draining || !ours {
		e.settle(ctx, key, r, ErrNotActive)
		return
	}
	p := NewPass(e.cfg.View, key, r.resync)
	p.engine, p.turn = e, turn
	err := e.attempt(during(ctx, turn), p, others)
	e.conclude(ctx, p, r, err)
}

// conclude tells what a pass came to, and settles what it was for.
func (e *engine[K]) conclude(ctx context.Context, p *Pass[K], r *request, err error) {
	results := p.Results()
	for _, result := range results {
		e.results.Report(ctx, result)
	}
	e.noteReported(r, results)
	e.metrics.pass(p.writes, err)
	e.fanOut(p, r, err)
	if err == nil && p.later != nil {
		e.settleLater(ctx, p.Key, r, p.later)
		return
	}
	e.settle(ctx, p.Key, r, err)
	if err == nil && p.again > 0 {
		e.requeue(p.Key, false)
		e.queue.keys.AddAfter(p.Key, p.again)
	}
}
