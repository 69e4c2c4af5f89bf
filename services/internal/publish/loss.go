package publish

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Run publishes until ctx ends. If the stream lost results, it forgets all of them and calls lost. The caller must then
// report everything again.
func (r *Results) Run(ctx context.Context, lost func()) {
	var publishing sync.WaitGroup
	publishing.Go(func() { r.outbox.runOutbox(ctx) })
	defer publishing.Wait()
	for backoff.Sleep(ctx, r.interval) {
		if !r.checkLoss(ctx) {
			continue
		}
		r.log.WarnContext(ctx, "results are lost; saying all of them again")
		r.Forget()
		lost()
	}
}

// Forget drops results that are not published yet, and makes the next report of every object count as new: another
// replica may have published other results meanwhile.
func (r *Results) Forget() {
	r.outbox.dropAll()
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.reported)
}

// Flush publishes the waiting results before the process ends.
func (r *Results) Flush() { r.outbox.flushOnce() }

// checkLoss reports whether results are lost. All are lost if the stream is another one, or was emptied. It looks for one
// random result. The result must be missing twice, because a replica of the stream may lag.
func (r *Results) checkLoss(ctx context.Context) bool {
	key, ok := r.probeKey()
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	stream, err := r.js.Stream(ctx, topology.Results)
	if err == nil {
		if r.recordIncarnation(topology.Incarnation(stream.CachedInfo())) {
			return true
		}
		_, err = stream.GetLastMsgForSubject(ctx, topology.ResultSubject(r.service, key))
	}
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		r.log.DebugContext(ctx, "stream cannot be checked", slog.String("stream", topology.Results), slog.Any("error", err))
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	twice := err != nil && r.suspect == key
	r.suspect = event.Key{}
	if err != nil && !twice {
		r.suspect = key
	}
	return twice
}

// recordIncarnation records the life of the stream, and reports whether it differs from the one before.
func (r *Results) recordIncarnation(incarnation string) bool {
	before := r.incarnation
	r.incarnation = incarnation
	return before != "" && before != incarnation
}

// probeKey returns an object whose result must exist: the suspect, or a random one.
func (r *Results) probeKey() (event.Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.reported[r.suspect]; ok {
		return r.suspect, true
	}
	key, ok := AnyKey(r.reported)
	return key, ok && !r.outbox.hasKey(topology.ResultSubject(r.service, key))
}

// AnyKey returns a random key. The start of an iteration is random enough only in a large map.
func AnyKey[K comparable, V any](m map[K]V) (key K, ok bool) {
	const large = 64
	if len(m) == 0 {
		return key, false
	}
	skip := rand.N(min(len(m), large))
	for key = range m {
		if skip--; skip < 0 {
			break
		}
	}
	return key, true
}
