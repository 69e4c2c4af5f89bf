package publish

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
	"github.com/entail-dev/entail/services/internal/clip"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	// maxMessage bounds the message of a result, in bytes.
	maxMessage = 2048
	// minTTL is the least that a server takes.
	minTTL = time.Second
)

// Result is what a service made of one object.
type Result struct {
	// Change is the state that was acted on.
	Change  event.Change
	Outcome eventv1.Outcome
	// Message tells a person what they need to know; empty when applied.
	Message string
	// Writes counts calls that changed a backend or the API server.
	Writes int
}

// parallelResults is how many results are on their way at a time.
const parallelResults = 32

// Results tells the bus what a service made of objects, each thing once.
type Results struct {
	js      jetstream.JetStream
	service string
	log     *slog.Logger
	outbox  *outbox
	// interval is how often the stream is looked at.
	interval time.Duration
	// incarnation is the life of the stream when it was last looked at.
	incarnation string

	mu sync.Mutex
	// reported is a fingerprint of what was last reported of an object.
	reported map[event.Key]uint64
	seed     maphash.Seed
	// suspect is an object whose result was not found.
	suspect event.Key
}

// NewResults makes the results of one service; [Results.Run] publishes them, while may says so: whoever is no longer the one at work
// would overwrite what the next has to say.
func NewResults(js jetstream.JetStream, service string, may func() bool, log *slog.Logger) *Results {
	r := &Results{
		js: js, service: service, log: log, outbox: newOutbox(js, log, parallelResults), interval: time.Second,
		reported: map[event.Key]uint64{}, seed: maphash.MakeSeed(),
	}
	r.outbox.may = may
	return r
}

// report is what makes one result differ from another.
type report struct {
	uid        string
	generation int64
	// version stands in for the generation of kinds that have none.
	version string
	outcome eventv1.Outcome
	message string
}

// Report publishes a result, soon, unless the same was reported before. That of a deletion is
// forgotten with its tombstone. A result is information: nobody waits until it is published.
func (r *Results) Report(ctx context.Context, result Result) {
	result.Message = clip.Text(result.Message, maxMessage)
	if !r.news(result) {
		return
	}
	c := result.Change
	data, err := proto.Marshal(&eventv1.ResourceResult{
		Ref: c.Key.Ref(), Service: r.service, Uid: c.UID, ResourceVersion: c.ResourceVersion, Generation: c.Generation,
		Outcome: result.Outcome, Message: result.Message, Writes: int64(result.Writes), Traceparent: c.Traceparent,
		ObservedAt: timestamppb.New(c.ObservedAt), FinishedAt: timestamppb.Now(),
	})
	if err != nil {
		r.log.WarnContext(ctx, "result not published", slog.String("object", c.Key.String()), slog.Any("error", err))
		return
	}
	subject := topology.ResultSubject(r.service, c.Key)
	r.outbox.put(&outgoing{key: subject, subject: subject, data: data, options: lifetime(c)})
}

// lifetime makes the bus forget the result of a deletion.
func lifetime(c event.Change) []jetstream.PublishOpt {
	switch {
	case !c.Deleted:
		return nil
	case c.ExpiresAt.IsZero():
		return []jetstream.PublishOpt{jetstream.WithMsgTTL(topology.TombstoneTTL)}
	}
	return []jetstream.PublishOpt{jetstream.WithMsgTTL(max(time.Until(c.ExpiresAt), minTTL))}
}

// news remembers a result, and tells whether it differs from the last one of its object.
func (r *Results) news(result Result) bool {
	c := result.Change
	is := report{uid: c.UID, generation: c.Generation, outcome: result.Outcome, message: result.Message}
	if c.Generation == 0 {
		is.version = c.ResourceVersion
	}
	fingerprint := maphash.Comparable(r.seed, is)
	r.mu.Lock()
	defer r.mu.Unlock()
	before, known := r.reported[c.Key]
	if c.Deleted {
		delete(r.reported, c.Key)
	} else {
		r.reported[c.Key] = fingerprint
	}
	return !known || before != fingerprint
}
