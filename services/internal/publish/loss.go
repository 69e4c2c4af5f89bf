package publish

import (
	"context"
	"errors"
	"log/slog"
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
		r.mu.Lock()
		clear(r.reported)
		r.mu.Unlock()
		lost()
	}
}

// Flush publishes what still waits at the end.
func (r *Results) Flush() { r.outbox.flush() }

// missing looks for one result, taken at random: of a stream that was wiped each is missing. It
// must be missing twice, for a replica of the stream may lag.
func (r *Results) missing(ctx context.Context) bool {
	key, ok := r.probe()
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	stream, err := r.js.Stream(ctx, topology.Results)
	if err == nil {
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

// probe picks an object whose result should be there: the one under suspicion, or any.
func (r *Results) probe() (event.Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.reported[r.suspect]; ok {
		return r.suspect, true
	}
	for key := range r.reported {
		return key, !r.outbox.holds(topology.ResultSubject(r.service, key))
	}
	return event.Key{}, false
}
