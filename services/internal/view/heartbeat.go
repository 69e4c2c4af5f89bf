package view

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

// progress is how far the stream followed a cluster at a time, by [bootclock.Now].
type progress struct{ at, behind time.Duration }

// moment is a time, by [bootclock.Now], and the last heartbeats that had been read by then. Who holds all that the stream did at that
// time holds what was published before them. Of what is read later that is not known: it comes by another stream, and may overtake
// what the watcher published first.
type moment struct {
	at    time.Duration
	beats map[string]progress
}

// now is the moment that it is.
func (v *View) now() moment {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return moment{bootclock.Now(), maps.Clone(v.beats)}
}

// Age is how old what the view holds may be: the API server was so then, or later. It is the longest
// duration there is while nothing is known of that, as before there are heartbeats of the watcher.
func (v *View) Age() time.Duration {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.incarnation == "" || v.loading || len(v.heard.beats) == 0 {
		return math.MaxInt64
	}
	var age time.Duration
	for _, beat := range v.heard.beats {
		age = max(age, bootclock.Since(beat.at)+beat.behind)
	}
	return age
}

// clock is what the server that dates heartbeats said when it was asked what time it is. So it is known of a heartbeat how old it is at
// most, however late it is read: who was held still has many before them that were written long ago.
type clock struct {
	asked time.Duration
	told  time.Time
}

// date is when something was written, at the earliest, by [bootclock.Now].
func (c clock) date(written time.Time) time.Duration {
	return min(bootclock.Now(), c.asked+written.Sub(c.told))
}

// readClock asks for the time; while there is no answer, what is known goes on.
func (v *View) readClock(ctx context.Context) {
	asked := bootclock.Now()
	stream, err := v.cfg.JS.Stream(ctx, topology.Sync)
	if err != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock = clock{asked, stream.CachedInfo().TimeStamp}
}

// readHeartbeat takes a heartbeat that was written at a time. The first that a feed brings may have been at any time.
func (v *View) readHeartbeat(msg jetstream.Msg, written time.Time, first bool) {
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
	v.beats[h.GetCluster()] = progress{at: v.clock.date(written), behind: h.GetBehind().AsDuration()}
	select {
	case v.beaten <- struct{}{}:
	default:
	}
}
