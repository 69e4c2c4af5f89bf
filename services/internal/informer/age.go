package informer

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/barrier"
	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/topology"
)

// provenBarrier is the last barrier that the view has read of a cluster. At the time at, by [bootclock.Now], the stream followed
// the cluster with a delay.
type provenBarrier struct {
	barrier.Position

	sequence   uint64
	at, behind time.Duration
	// unlinked means that another consumer feeds the view since.
	unlinked bool
	// halted is why services must grant nothing. It is empty if they may.
	halted string
}

// maxHalts bounds the halts that a view keeps.
const maxHalts = 64

// latchHalt keeps the halt of a barrier until a barrier holds its key. A later barrier without the halt does not end it. The
// caller holds the lock.
func (v *Informer) latchHalt(b *eventv1.Barrier) {
	for _, key := range b.GetResumeKeys() {
		delete(v.halts, barrier.HaltDigest(key))
	}
	if b.GetHaltDigest() != "" && len(v.halts) < maxHalts {
		v.halts[b.GetHaltDigest()] = b.GetHalted()
	}
}

// Staleness returns how old the content of the view may be: it equals the state of the API server that long ago, or a later
// one. It returns the longest duration while this is not known, such as before the first barrier.
func (v *Informer) Staleness() time.Duration {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.streamID == "" || v.loading || len(v.proofs) == 0 {
		return math.MaxInt64
	}
	var age time.Duration
	for _, p := range v.proofs {
		age = max(age, bootclock.Since(p.at)+p.behind)
	}
	return age
}

// serverClock pairs a time of the NATS server with the local time at which the service asked for it. It gives an upper bound
// for the age of a barrier. That matters for a process that was paused and then reads old barriers.
type serverClock struct {
	asked time.Duration
	told  time.Time
}

// toBootTime converts a time of the server to [bootclock.Now], to the earliest that it can be.
func (c serverClock) toBootTime(written time.Time) time.Duration {
	return min(bootclock.Now(), c.asked+written.Sub(c.told))
}

// recordBarrier stores a barrier. It ignores one that was written before the load began: end is the sequence of the mark that
// the load wrote. It returns errReplaced if the barrier does not name the last one that the view has read: then the view
// holds a part of the stream that was lost.
func (v *Informer) recordBarrier(msg jetstream.Msg, meta *jetstream.MsgMetadata, end uint64) error {
	var b eventv1.Barrier
	if err := proto.Unmarshal(msg.Data(), &b); err != nil || topology.BarrierSubject(b.GetCluster()) != msg.Subject() {
		v.cfg.Log.Warn("unusable barrier skipped", slog.String("subject", msg.Subject()), slog.Any("error", err))
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.latchHalt(&b)
	if b.GetRun() == "" { // It only announces a halt.
		return nil
	}
	last, proven := v.proofs[b.GetCluster()]
	switch {
	case !proven && meta.Sequence.Stream < end:
		return nil
	case proven && !barrier.IncludesPosition(&b, last.Position):
		v.cfg.Log.Warn("the stream was restored, purged or truncated; reading again", slog.String("cluster", b.GetCluster()),
			slog.Uint64("sequence", meta.Sequence.Stream), slog.Uint64("read", last.sequence))
		return errReplaced
	}
	at := v.clock.toBootTime(meta.Timestamp)
	v.proofs[b.GetCluster()] = provenBarrier{
		Position: barrier.PositionOf(&b), sequence: meta.Sequence.Stream, at: at, behind: b.GetBehind().AsDuration(), halted: b.GetHalted(),
	}
	v.syncedAt = max(v.syncedAt, at)
	select {
	case v.beaten <- struct{}{}:
	default:
	}
	return nil
}

// requireBarrier returns nil once the view has read a barrier of a cluster that was written after the load began, and after the
// server made the consumer again. The caller holds the lock.
func (v *Informer) requireBarrier(cluster string) error {
	switch p, ok := v.proofs[cluster]; {
	case p.halted != "":
		return fmt.Errorf("%w: all services are halted: %s", ErrIncomplete, p.halted)
	case !ok:
		return fmt.Errorf("%w: no barrier of cluster %q since the stream was read; does its watcher run?", ErrIncomplete, cluster)
	case p.unlinked:
		return fmt.Errorf("%w: no barrier of cluster %q since the connection to the stream was lost; does its watcher run?", ErrIncomplete, cluster)
	}
	return nil
}

// acceptConsumer records the consumer of a message. It reports whether the message may continue what the view has read.
// Another consumer may read another life of the stream. Then anything that came behind the last barrier, of any cluster,
// may be lost, and no later message would show it. Otherwise the next barriers show whether it is the same life. The view
// is incomplete until each cluster has one.
func (v *Informer) acceptConsumer(consumer string) bool {
	if v.consumer == consumer {
		return true
	}
	v.consumer = strings.Clone(consumer)
	v.mu.Lock()
	defer v.mu.Unlock()
	var last uint64
	for _, p := range v.proofs {
		last = max(last, p.sequence)
	}
	if v.position > last {
		return false
	}
	for cluster, p := range v.proofs {
		p.unlinked = true
		v.proofs[cluster] = p
	}
	return !v.loading && len(v.proofs) > 0
}
