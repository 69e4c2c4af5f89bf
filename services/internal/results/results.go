// Package results publishes the results of a service: for each object, whether its last change was applied. It
// publishes in the background until each message is acknowledged.
//
// Only the leader publishes, and a result that equals the last one is not published again. If the stream loses
// results, the package requests all of them again.
package results

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/truncate"
)

const (
	// maxMessage bounds the text of a result, in bytes.
	maxMessage = 2048
	// minTTL is the smallest TTL that NATS accepts.
	minTTL = time.Second
)

// Result is the outcome of a reconciliation for one object.
type Result struct {
	// Change is the reconciled state of the object.
	Change  event.Change
	Outcome eventv1.Outcome
	// Message explains the outcome to users; empty if the change was applied.
	Message string
	// Writes counts the requests that changed a backend or the API server.
	Writes int
}

// parallelResults bounds the results in flight.
const parallelResults = 32

// Publisher publishes the results of one service.
type Publisher struct {
	js      jetstream.JetStream
	service string
	log     *slog.Logger
	outbox  *outbox
	// interval is the time between two checks of the stream.
	interval time.Duration
	// streamID is the creation time of the stream at the last check.
	streamID string

	mu sync.Mutex
	// reported holds a hash of the last result of each object.
	reported map[event.Key]uint64
	seed     maphash.Seed
	// suspect is the object whose result was missing at the last check.
	suspect event.Key
}

// New returns the publisher of one service. [Publisher.Run] publishes only while mayPublish returns true, because a
// replica that is no longer the leader would overwrite the results of the next leader.
func New(js jetstream.JetStream, service string, mayPublish func() bool, log *slog.Logger) *Publisher {
	return &Publisher{
		js: js, service: service, log: log, outbox: newOutbox(js, mayPublish, log), interval: time.Second,
		reported: map[event.Key]uint64{}, seed: maphash.MakeSeed(),
	}
}

// reportedFields holds the fields that make two results different.
type reportedFields struct {
	uid        string
	generation int64
	// version replaces the generation for kinds without a generation.
	version string
	outcome eventv1.Outcome
	message string
}

// Report publishes a result in the background, unless it equals the last result of the object. The result of a
// deletion expires together with the tombstone.
func (p *Publisher) Report(ctx context.Context, result Result) {
	result.Message = truncate.Text(result.Message, maxMessage)
	if !p.recordReport(result) {
		return
	}
	c := result.Change
	data, err := proto.Marshal(&eventv1.ResourceResult{
		Ref: c.Key.ToObjectRef(), Service: p.service, Uid: c.UID, ResourceVersion: c.ResourceVersion, Generation: c.Generation,
		Outcome: result.Outcome, Message: result.Message, Writes: int64(result.Writes), Traceparent: c.Traceparent,
		ObservedAt: timestamppb.New(c.ObservedAt), FinishedAt: timestamppb.Now(),
	})
	if err != nil {
		p.log.WarnContext(ctx, "result not published", slog.String("object", c.Key.String()), slog.Any("error", err))
		return
	}
	subject := topology.ResultSubject(p.service, c.Key)
	p.outbox.putMessage(&outgoingMessage{subject: subject, data: data, options: resultTTLOptions(c)})
}

// resultTTLOptions returns a TTL option for the result of a deletion, and no option for other results.
func resultTTLOptions(c event.Change) []jetstream.PublishOpt {
	switch {
	case !c.Deleted:
		return nil
	case c.ExpiresAt.IsZero():
		return []jetstream.PublishOpt{jetstream.WithMsgTTL(topology.TombstoneTTL)}
	}
	return []jetstream.PublishOpt{jetstream.WithMsgTTL(max(time.Until(c.ExpiresAt), minTTL))}
}

// recordReport stores the hash of a result and reports whether the result differs from the last one of its object.
func (p *Publisher) recordReport(result Result) bool {
	c := result.Change
	is := reportedFields{uid: c.UID, generation: c.Generation, outcome: result.Outcome, message: result.Message}
	if c.Generation == 0 {
		is.version = c.ResourceVersion
	}
	fingerprint := maphash.Comparable(p.seed, is)
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.reported[c.Key]
	if c.Deleted {
		delete(p.reported, c.Key)
	} else {
		p.reported[c.Key] = fingerprint
	}
	return !known || before != fingerprint
}
