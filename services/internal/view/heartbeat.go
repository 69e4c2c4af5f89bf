package view

import (
	"log/slog"
	"math"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/bootclock"
)

// progress is how far the stream followed a cluster at a time, by [bootclock.Now].
type progress struct{ at, behind time.Duration }

// Age is how old what the view holds may be: the API server was so then, or later. It is the longest
// duration there is while nothing is known of that, as before there are heartbeats of the watcher.
func (v *View) Age() time.Duration {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.incarnation == "" || v.loading || len(v.beats) == 0 {
		return math.MaxInt64
	}
	var age time.Duration
	for _, beat := range v.beats {
		age = max(age, bootclock.Since(min(beat.at, v.heard))+beat.behind)
	}
	return age
}

// readHeartbeat takes a heartbeat. The first that a feed brings may have been written at any time.
func (v *View) readHeartbeat(msg jetstream.Msg, first bool) {
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
	v.beats[h.GetCluster()] = progress{at: bootclock.Now(), behind: h.GetBehind().AsDuration()}
}
