package informer

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/topology"
)

// progress says that at a time, by [bootclock.Now], the stream followed its cluster with a delay.
type progress struct{ at, behind time.Duration }

// syncPoint is a time, by [bootclock.Now], with the heartbeats that were read before it. A view that holds everything that
// the stream held at that time holds everything that was published before these heartbeats. This is not known of later
// heartbeats: they come by another stream, and may overtake changes that were published first.
type syncPoint struct {
	at    time.Duration
	beats map[string]progress
}

// currentSyncPoint returns the present moment.
func (v *Informer) currentSyncPoint() syncPoint {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return syncPoint{bootclock.Now(), maps.Clone(v.beats)}
}

// Age returns how old the content of the view may be: it equals the state of the API server that long ago, or a later
// one. It returns the longest duration while this is not known, such as before the first heartbeat.
func (v *Informer) Age() time.Duration {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.streamID == "" || v.loading || len(v.syncedAt.beats) == 0 {
		return math.MaxInt64
	}
	var age time.Duration
	for _, beat := range v.syncedAt.beats {
		age = max(age, bootclock.Since(beat.at)+beat.behind)
	}
	return age
}

// clock pairs a time of the NATS server with the local time at which the service asked for it. It gives an upper bound
// for the age of a heartbeat. That matters for a process that was paused and then reads old heartbeats.
type clock struct {
	asked time.Duration
	told  time.Time
}

// toBootTime converts a time of the server to [bootclock.Now], to the earliest that it can be.
func (c clock) toBootTime(written time.Time) time.Duration {
	return min(bootclock.Now(), c.asked+written.Sub(c.told))
}

// readClock asks the server for its time. Without an answer the earlier one stays.
func (v *Informer) readClock(ctx context.Context) {
	asked := bootclock.Now()
	stream, err := v.cfg.JS.Stream(ctx, topology.Sync)
	if err != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock = clock{asked, stream.CachedInfo().TimeStamp}
}

// readHeartbeat stores a heartbeat. It ignores the first of a feed, which may have been written at any time.
func (v *Informer) readHeartbeat(msg jetstream.Msg, written time.Time, first bool) {
	var h eventv1.Heartbeat
	if err := proto.Unmarshal(msg.Data(), &h); err != nil {
		v.cfg.Log.Warn("unusable heartbeat skipped", slog.String("subject", msg.Subject()), slog.Any("error", err))
		return
	}
	if first {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.beats[h.GetCluster()] = progress{at: v.clock.toBootTime(written), behind: h.GetBehind().AsDuration()}
	select {
	case v.beaten <- struct{}{}:
	default:
	}
}
