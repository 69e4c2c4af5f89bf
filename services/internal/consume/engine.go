package consume

import (
	"context"
	"hash/maphash"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/entail-dev/entail/services/internal/event"
)

// engine knows which keys wait to be reconciled, and which messages wait for them.
type engine[K comparable] struct {
	cfg        Config
	reconciler Reconciler[K]
	queue      workqueue.TypedDelayingInterface[K]
	metrics    metrics
	results    results

	mu sync.Mutex
	// waiting is the work of each key since its last reconciliation began.
	waiting map[K]*batch
	// routes is what each object touched when it was last looked at.
	routes map[event.Key][]K
	// troubles holds the keys whose last reconciliation failed.
	troubles map[K]trouble
	// open holds every message not settled yet; their leases are renewed.
	open map[*delivery]struct{}
	// pin names our turn as the active replica.
	pin string
	// draining means that nothing new is begun.
	draining bool
}

// batch is why a key is to be reconciled: messages, or just the key itself.
type batch struct {
	deliveries []*delivery
	resync     bool
}

func newEngine[K comparable](cfg Config, reconciler Reconciler[K]) *engine[K] {
	e := &engine[K]{
		cfg: cfg, reconciler: reconciler,
		queue:   workqueue.NewTypedDelayingQueue[K](),
		metrics: newMetrics(cfg.Metrics, cfg.Service.Name),
		results: results{js: cfg.JS, service: cfg.Service.Name, log: cfg.Log, said: map[event.Key]uint64{}, seed: maphash.MakeSeed()},
		waiting: map[K]*batch{}, routes: map[event.Key][]K{},
		troubles: map[K]trouble{},
		open:     map[*delivery]struct{}{},
	}
	cfg.View.OnReload(func() { e.everything(false) })
	return e
}

// everything looks at all objects that the view or the engine has ever known.
func (e *engine[K]) everything(resync bool) {
	for _, object := range e.cfg.View.Keys() {
		touched := e.route(object) // What it touched before, too: nobody else may have looked at that yet.
		e.mu.Lock()
		e.enqueue(touched, resync)
		e.mu.Unlock()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, keys := range e.routes {
		e.enqueue(keys, resync)
	}
}

// enqueue asks for keys without any message; the caller holds the lock.
func (e *engine[K]) enqueue(keys []K, resync bool) {
	for _, key := range keys {
		b := e.wait(key)
		b.resync = b.resync || resync
		e.queue.Add(key)
	}
}

// route tells which keys an object touches, or did when it was last looked at.
func (e *engine[K]) route(object event.Key) []K {
	now := e.reconciler.Keys(object)
	e.mu.Lock()
	defer e.mu.Unlock()
	touched := slices.Clone(now)
	for _, key := range e.routes[object] {
		if !slices.Contains(touched, key) {
			touched = append(touched, key)
		}
	}
	if len(now) == 0 {
		delete(e.routes, object)
	} else {
		e.routes[object] = now
	}
	return touched
}

// wait is the batch of a key; the caller holds the lock.
func (e *engine[K]) wait(key K) *batch {
	b, ok := e.waiting[key]
	if !ok {
		b = &batch{}
		e.waiting[key] = b
	}
	return b
}

// attach makes d wait for keys.
func (e *engine[K]) attach(d *delivery, keys []K) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d.keys = len(keys)
	e.open[d] = struct{}{}
	for _, key := range keys {
		b := e.wait(key)
		b.deliveries = append(b.deliveries, d)
		b.resync = b.resync || d.replay
		e.queue.Add(key)
	}
}

// work reconciles keys until the queue is shut down.
func (e *engine[K]) work(ctx context.Context) {
	for {
		key, shutdown := e.queue.Get()
		if shutdown {
			return
		}
		e.reconcile(ctx, key)
		e.queue.Done(key)
	}
}

// gateDelay is how often a key looks whether the view is complete again.
const gateDelay = 100 * time.Millisecond

func (e *engine[K]) reconcile(ctx context.Context, key K) {
	if e.cfg.View.Complete() != nil {
		e.queue.AddAfter(key, gateDelay)
		return
	}
	e.mu.Lock()
	b := e.waiting[key]
	delete(e.waiting, key)
	stop := b == nil || e.draining
	e.mu.Unlock()
	if b == nil {
		return
	}
	if stop {
		e.settle(ctx, key, b, errDraining)
		return
	}
	found, err := e.attempt(ctx, key, b)
	for _, r := range found {
		e.results.report(ctx, r)
	}
	e.metrics.pass(found, err)
	e.settle(ctx, key, b, err)
}

// leases renews the lease on every open message.
func (e *engine[K]) leases(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			e.mu.Lock()
			open := make([]*delivery, 0, len(e.open))
			for d := range e.open {
				open = append(open, d)
			}
			e.mu.Unlock()
			for _, d := range open {
				if err := d.msg.InProgress(); err != nil {
					e.cfg.Log.DebugContext(ctx, "lease not renewed", slog.String("subject", d.msg.Subject()), slog.Any("error", err))
				}
			}
		}
	}
}
