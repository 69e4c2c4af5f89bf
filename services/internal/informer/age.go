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

// clusterBarrier is the last barrier of one cluster that the informer has read. The stream contained all changes of the
// cluster up to (at - behind), a time of [bootclock.Now].
type clusterBarrier struct {
	barrier.Position

	sequence   uint64
	at, behind time.Duration
	// unlinked means that another consumer feeds the informer since this barrier was read.
	unlinked bool
	// halted is the reason why services must grant nothing. It is empty if they may grant.
	halted string
}

// maxHalts bounds the number of halts that an informer stores.
const maxHalts = 64

// recordHalt stores the halt of a barrier. The halt ends only when a later barrier names its resume key; a barrier
// without a halt does not end it. The caller holds the lock.
func (v *Informer) recordHalt(b *eventv1.Barrier) {
	for _, key := range b.GetResumeKeys() {
		delete(v.halts, barrier.HaltDigest(key))
	}
	if b.GetHaltDigest() != "" && len(v.halts) < maxHalts {
		v.halts[b.GetHaltDigest()] = b.GetHalted()
	}
}

// Staleness returns the maximum age of the informer's content: the content equals a state of the API server that is
// not older than this. It returns the longest duration while the age is unknown, for example before the first barrier.
func (v *Informer) Staleness() time.Duration {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.streamID == "" || v.loading || len(v.lastBarriers) == 0 {
		return math.MaxInt64
	}
	var age time.Duration
	for _, p := range v.lastBarriers {
		age = max(age, bootclock.Since(p.at)+p.behind)
	}
	return age
}

// natsClock pairs a time of the NATS server with the local time of the request that returned it. The pair gives an
// upper bound for the age of a barrier, even if the process was paused before it read the barrier.
type natsClock struct {
	asked time.Duration
	told  time.Time
}

// toBootTime converts a time of the NATS server to [bootclock.Now]. It returns the earliest local time that is
// possible.
func (c natsClock) toBootTime(written time.Time) time.Duration {
	return min(bootclock.Now(), c.asked+written.Sub(c.told))
}

// recordBarrier stores a barrier. It ignores a barrier that was written before the load began; end is the sequence of
// the end mark that the load wrote.
//
// recordBarrier returns errReplaced if the barrier does not continue the last one that the informer has read. In that
// case the stream has lost messages that the informer holds.
func (v *Informer) recordBarrier(msg jetstream.Msg, meta *jetstream.MsgMetadata, end uint64) error {
	var b eventv1.Barrier
	if err := proto.Unmarshal(msg.Data(), &b); err != nil || topology.BarrierSubject(b.GetCluster()) != msg.Subject() {
		v.cfg.Log.Warn("unusable barrier skipped", slog.String("subject", msg.Subject()), slog.Any("error", err))
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.recordHalt(&b)
	if b.GetRun() == "" { // This barrier only announces a halt.
		return nil
	}
	last, proven := v.lastBarriers[b.GetCluster()]
	switch {
	case !proven && meta.Sequence.Stream < end:
		return nil
	case proven && !barrier.IsAtOrAfter(&b, last.Position):
		v.cfg.Log.Warn("the stream was restored, purged or truncated; reading again", slog.String("cluster", b.GetCluster()),
			slog.Uint64("sequence", meta.Sequence.Stream), slog.Uint64("read", last.sequence))
		return errReplaced
	}
	at := v.clock.toBootTime(meta.Timestamp)
	v.lastBarriers[b.GetCluster()] = clusterBarrier{
		Position: barrier.PositionOf(&b), sequence: meta.Sequence.Stream, at: at, behind: b.GetBehind().AsDuration(), halted: b.GetHalted(),
	}
	v.syncedAt = max(v.syncedAt, at)
	select {
	case v.barrierRead <- struct{}{}:
	default:
	}
	return nil
}

// checkBarrierRead returns nil if the informer has read a barrier of the cluster since the load began and since the
// consumer was last created. It returns an error if services are halted. The caller holds the lock.
func (v *Informer) checkBarrierRead(cluster string) error {
	switch p, ok := v.lastBarriers[cluster]; {
	case p.halted != "":
		return fmt.Errorf("%w: all services are halted: %s", ErrIncomplete, p.halted)
	case !ok:
		return fmt.Errorf("%w: no barrier of cluster %q since the stream was read; does its watcher run?", ErrIncomplete, cluster)
	case p.unlinked:
		return fmt.Errorf("%w: no barrier of cluster %q since the connection to the stream was lost; does its watcher run?", ErrIncomplete, cluster)
	}
	return nil
}

// recordConsumer records the consumer that delivered a message. It returns false if the informer must load the stream
// again.
//
// A new consumer may read another life of the stream. Messages after the last barrier may then be lost, and no later
// message would show the loss. So a new consumer is accepted only if the informer has read nothing after its last
// barrier. The informer is then incomplete until it has read a new barrier of each cluster.
func (v *Informer) recordConsumer(consumer string) bool {
	if v.consumer == consumer {
		return true
	}
	v.consumer = strings.Clone(consumer)
	v.mu.Lock()
	defer v.mu.Unlock()
	var last uint64
	for _, p := range v.lastBarriers {
		last = max(last, p.sequence)
	}
	if v.position > last {
		return false
	}
	for cluster, p := range v.lastBarriers {
		p.unlinked = true
		v.lastBarriers[cluster] = p
	}
	return !v.loading && len(v.lastBarriers) > 0
}
