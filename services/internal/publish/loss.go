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

// Run publishes until ctx ends. Should the stream have lost results, all are forgotten, and lost is
// called: whatever is reported then is said again.
func (r *Results) Run(ctx context.Context, lost func()) {
	var publishing sync.WaitGroup
	publishing.Go(func() { r.outbox.run(ctx) })
	defer publishing.Wait()
	for backoff.Sleep(ctx, r.interval) {
		if !r.missing(ctx) {
			continue
		}
		r.log.WarnContext(ctx, "results are lost; saying all of them again")
		r.Forget()
		lost()
	}
}

// Forget has all be said again that is reported from now on, and nothing that was reported before: somebody else may have said
// otherwise since.
func (r *Results) Forget() {
	r.outbox.clear()
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.reported)
}

// Flush publishes what still waits, before the end.
func (r *Results) Flush() { r.outbox.flush() }

// missing tells whether results are lost: all are when the stream is another one, and of a stream that
// was emptied each is. One is looked for, taken at random. It must be missing twice, for a replica of
// the stream may lag.
func (r *Results) missing(ctx context.Context) bool {
	key, ok := r.probe()
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	stream, err := r.js.Stream(ctx, topology.Results)
	if err == nil {
		if r.replaced(topology.Incarnation(stream.CachedInfo())) {
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

// replaced notes which life of the stream this is, and reports whether it was another before.
func (r *Results) replaced(incarnation string) bool {
	before := r.incarnation
	r.incarnation = incarnation
	return before != "" && before != incarnation
}

// probe picks an object whose result should be there: the one under suspicion, or any.
func (r *Results) probe() (event.Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.reported[r.suspect]; ok {
		return r.suspect, true
	}
	key, ok := AnyKey(r.reported)
	return key, ok && !r.outbox.holds(topology.ResultSubject(r.service, key))
}

// AnyKey picks a key at random: where iteration begins is random enough only in a large map.
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
