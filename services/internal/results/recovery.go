package results

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

// maxSkip bounds the map entries that a random choice skips. In a large map the random start of the iteration is
// enough.
const maxSkip = 64

// Run publishes until ctx ends. If the stream has lost results, Run calls ResetReports and then onLost. The callback
// must report all results again.
func (p *Publisher) Run(ctx context.Context, onLost func()) {
	var publishing sync.WaitGroup
	publishing.Go(func() { p.outbox.runOutbox(ctx) })
	defer publishing.Wait()
	for backoff.Sleep(ctx, p.interval) {
		if !p.detectLostResults(ctx) {
			continue
		}
		p.log.WarnContext(ctx, "results are lost; all of them are published again")
		p.ResetReports()
		onLost()
	}
}

// ResetReports removes the unpublished results and makes the next report of every object count as new. Call it when
// another replica may have published other results.
func (p *Publisher) ResetReports() {
	p.outbox.dropWaiting()
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.reported)
}

// Flush publishes the waiting results before the process ends.
func (p *Publisher) Flush() { p.outbox.flushOnce() }

// detectLostResults reports whether results are lost. All results are lost if the stream was created again. Otherwise
// detectLostResults looks up the result of one random object. The result must be missing in two checks, because a
// replica of the stream may lag.
func (p *Publisher) detectLostResults(ctx context.Context) bool {
	key, ok := p.chooseProbeKey()
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	stream, err := p.js.Stream(ctx, topology.Results)
	if err == nil {
		before := p.streamID
		if p.streamID = topology.StreamID(stream.CachedInfo()); before != "" && before != p.streamID {
			return true
		}
		_, err = stream.GetLastMsgForSubject(ctx, topology.ResultSubject(p.service, key))
	}
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		p.log.DebugContext(ctx, "stream cannot be checked", slog.String("stream", topology.Results), slog.Any("error", err))
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	twice := err != nil && p.suspect == key
	p.suspect = event.Key{}
	if err != nil && !twice {
		p.suspect = key
	}
	return twice
}

// chooseProbeKey returns an object whose result must exist: the suspect, or a random object. It returns false if there
// is none, or if the result is still waiting.
func (p *Publisher) chooseProbeKey() (event.Key, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.reported[p.suspect]; ok {
		return p.suspect, true
	}
	skip := rand.N(max(1, min(len(p.reported), maxSkip)))
	for key := range p.reported {
		if skip == 0 {
			return key, p.outbox.waitingMessage(topology.ResultSubject(p.service, key)) == nil
		}
		skip--
	}
	return event.Key{}, false
}
