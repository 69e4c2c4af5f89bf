package consume

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
)

// maxMessage bounds the message of a result, in bytes.
const maxMessage = 2048

// results tells the bus what the service made of objects, each thing once.
type results struct {
	js      jetstream.JetStream
	service string
	log     *slog.Logger

	mu sync.Mutex
	// said is a fingerprint of what was last said about an object.
	said map[event.Key]uint64
	seed maphash.Seed
}

// saying is what makes one result differ from another.
type saying struct {
	uid        string
	generation int64
	// version stands in for the generation of kinds that have none.
	version string
	outcome eventv1.Outcome
	message string
}

// report publishes r unless the same was said before. A result is information: when it
// cannot be published the work stands, and the next resync says it again.
func (r *results) report(ctx context.Context, result Result) {
	c := result.Change
	s := saying{uid: c.UID, generation: c.Generation, outcome: result.Outcome, message: result.Message[:min(len(result.Message), maxMessage)]}
	if c.Generation == 0 {
		s.version = c.ResourceVersion
	}
	mark := maphash.Comparable(r.seed, s)
	r.mu.Lock()
	same := r.said[c.Key] == mark
	if c.Deleted {
		delete(r.said, c.Key)
	} else {
		r.said[c.Key] = mark
	}
	r.mu.Unlock()
	if same {
		return
	}
	data, err := proto.Marshal(&eventv1.ResourceResult{
		Ref: c.Key.Ref(), Service: r.service, Uid: c.UID, ResourceVersion: c.ResourceVersion, Generation: c.Generation,
		Outcome: s.outcome, Message: s.message, Writes: int64(result.Writes), Traceparent: c.Traceparent,
		ObservedAt: timestamppb.New(c.ObservedAt), FinishedAt: timestamppb.Now(),
	})
	if err == nil {
		_, err = r.js.PublishAsync(topology.ResultSubject(r.service, c.Key), data)
	}
	if err != nil {
		r.mu.Lock()
		delete(r.said, c.Key)
		r.mu.Unlock()
		r.log.WarnContext(ctx, "result not published", slog.String("object", c.Key.String()), slog.Any("error", err))
	}
}
