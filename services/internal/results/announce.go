package results

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	// objectsPerAnnouncement bounds one announcement. A longer list takes several.
	objectsPerAnnouncement = 1000
	// announceFor bounds the retries of an announcement. Caches expire by themselves.
	announceFor = time.Minute
)

// Announcer publishes to caches that a store changed. No caller waits for it.
type Announcer struct {
	outbox *outbox
	log    *slog.Logger
	count  atomic.Uint64
}

// NewAnnouncer returns an announcer. [Announcer.Run] publishes.
func NewAnnouncer(js jetstream.JetStream, log *slog.Logger) *Announcer {
	return &Announcer{outbox: newOutbox(js, log, 1), log: log}
}

// Announce publishes a change of a store in the background.
func (a *Announcer) Announce(m *eventv1.StoreChanged) {
	parts := [][]string{nil}
	if len(m.GetObjects()) > 0 {
		parts = slices.Collect(slices.Chunk(m.GetObjects(), objectsPerAnnouncement))
	}
	for _, objects := range parts {
		data, err := proto.Marshal(&eventv1.StoreChanged{
			StoreId: m.GetStoreId(), AuthorizationModelId: m.GetAuthorizationModelId(), Objects: objects,
		})
		if err != nil {
			a.log.Warn("announcement not published", slog.String("store", m.GetStoreId()), slog.Any("error", err))
			return
		}
		a.outbox.putMessage(&outgoing{
			key: strconv.FormatUint(a.count.Add(1), 10), subject: topology.AnnounceSubject(m.GetStoreId()), data: data,
			until: time.Now().Add(announceFor),
		})
	}
}

// Run publishes until ctx ends.
func (a *Announcer) Run(ctx context.Context) error {
	a.outbox.runOutbox(ctx)
	return nil
}

// Flush publishes the waiting announcements before the process ends.
func (a *Announcer) Flush() { a.outbox.flushOnce() }
