package informer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

// errReplaced ends the feed because the informer's content no longer matches the stream. The informer then loads the
// stream again.
var errReplaced = errors.New("the stream of changes was replaced")

// loadAndFollow reads the stream from its start and follows it until an error.
func (v *Informer) loadAndFollow(ctx context.Context) error {
	stream, err := v.readStreamInfo(ctx)
	if err != nil {
		return err
	}
	v.beginLoad()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return v.followChanges(ctx, stream) })
	group.Go(func() error { return v.followMarkers(ctx, topology.StreamID(stream)) })
	group.Go(func() error { return v.checkCaughtUpLoop(ctx) })
	return group.Wait()
}

// readStreamInfo returns the state of the stream and updates the server clock.
func (v *Informer) readStreamInfo(ctx context.Context) (*jetstream.StreamInfo, error) {
	asked := bootclock.Now()
	stream, err := v.cfg.JS.Stream(ctx, topology.Changes)
	if err != nil {
		return nil, fmt.Errorf("look up stream %s: %w", topology.Changes, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock = natsClock{asked, stream.CachedInfo().TimeStamp}
	return stream.CachedInfo(), nil
}

func (v *Informer) followChanges(ctx context.Context, stream *jetstream.StreamInfo) error {
	filters := v.subjectFilters(func(k event.GroupResource) string { return topology.ChangesFilter(v.cfg.Cluster, k) })
	consumer, err := v.cfg.JS.OrderedConsumer(ctx, topology.Changes,
		orderedConsumerConfig(append(filters, topology.BarrierSubject(v.cfg.Cluster), topology.EndMarkSubject(v.cfg.Service))))
	if err != nil {
		return fmt.Errorf("read stream %s: %w", topology.Changes, err)
	}
	v.consumer = consumer.CachedInfo().Name
	now := bootclock.Now()
	end, err := v.publishEndMark(ctx)
	if err != nil {
		return err
	}
	loaded := false
	return forEachMessage(ctx, consumer, func(msg jetstream.Msg, meta *jetstream.MsgMetadata) error {
		if !v.recordConsumer(meta.Consumer) {
			return errReplaced
		}
		if err := v.applyMessage(ctx, msg, meta, end); err != nil {
			return err
		}
		v.setReadSequence(msg.Subject(), meta)
		if !loaded && meta.Sequence.Stream >= end {
			loaded = true
			v.finishLoad(ctx, stream, now)
		}
		return v.verifyMarkerCounts(ctx)
	})
}

// setReadSequence records the sequence of the last message, and the sequence of the last change.
func (v *Informer) setReadSequence(subject string, meta *jetstream.MsgMetadata) {
	v.mu.Lock()
	defer v.mu.Unlock()
	sequence := meta.Sequence.Stream
	if v.position, v.lastRead = sequence, meta.Timestamp; topology.IsServiceSubject(subject) || topology.IsBarrierSubject(subject) {
		return
	}
	v.changed = sequence
	if k, _, err := topology.ParseChangeOrTombstoneSubject(subject); err == nil && k.Target {
		v.targeted[snapshotScope{k.Cluster, k.GroupResource}] = sequence
	}
}

// applyMessage applies one message. It skips a change that cannot be decoded, or stores it without a value (see
// [Config.KeepUndecodable]). The service's own consumer receives the same message and makes it a dead letter.
// applyMessage retries other errors until ctx ends.
func (v *Informer) applyMessage(ctx context.Context, msg jetstream.Msg, meta *jetstream.MsgMetadata, end uint64) error {
	v.brought.Add(1)
	switch {
	case topology.IsServiceSubject(msg.Subject()):
		return nil // An end mark has no content; only its sequence counts.
	case topology.IsBarrierSubject(msg.Subject()):
		return v.recordBarrier(msg, meta, end)
	}
	err := v.decodeAndApply(ctx, msg)
	if err != nil && !fault.IsTerminal(err) {
		v.cfg.Log.WarnContext(ctx, "the informer cannot store a change; trying again",
			slog.String("subject", msg.Subject()), slog.Any("error", err))
		defer v.setBlockingErr(nil)
	}
	for err != nil && !fault.IsTerminal(err) {
		v.setBlockingErr(err)
		if !backoff.Sleep(ctx, reloadDelay) {
			return ctx.Err()
		}
		v.brought.Add(1)
		err = v.decodeAndApply(ctx, msg)
	}
	if err != nil {
		v.cfg.Log.DebugContext(ctx, "the informer skipped an unusable message", slog.String("subject", msg.Subject()), slog.Any("error", err))
	}
	return nil
}

// setBlockingErr records the error that the feed is retrying; nil means that the feed continues.
func (v *Informer) setBlockingErr(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.blockedBy = err
}

func (v *Informer) decodeAndApply(ctx context.Context, msg jetstream.Msg) error {
	change, err := topology.DecodeChange(msg)
	if err != nil {
		v.recordRefusal(msg.Subject())
		return err
	}
	err = v.Apply(ctx, change)
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.refused, msg.Subject())
	return err
}

// recordRefusal records that the last message about an object was refused. It ignores a tombstone with its own
// subject, because such a tombstone is about an earlier object with this name.
func (v *Informer) recordRefusal(subject string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, uid, err := topology.ParseChangeOrTombstoneSubject(subject); err == nil && uid == "" {
		v.refused[subject] = bootclock.Now()
	}
}

// hasOldRefusal reports whether a message was refused more than maxRefusal ago and no other message of its subject
// followed. The stream may have removed the refused message since, so the informer must load again.
func (v *Informer) hasOldRefusal() bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, at := range v.refused {
		if bootclock.Since(at) > maxRefusal {
			return true
		}
	}
	return false
}

func (v *Informer) beginLoad() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.position, v.changed, v.loading, v.marked = 0, 0, true, false
	v.lastRead = time.Time{}
	clear(v.epochs)
	clear(v.targeted)
	clear(v.lastBarriers)
	clear(v.refused)
	v.loads.Add(1)
	for _, t := range v.tables {
		t.beginLoad()
	}
	for _, f := range v.onBegin {
		f()
	}
}

// finishLoad makes the loaded content visible to readers. The content is everything that the stream held at the time
// then.
func (v *Informer) finishLoad(ctx context.Context, stream *jetstream.StreamInfo, then time.Duration) {
	again := v.showLoadedContent()
	v.mu.Lock()
	v.streamID, v.read, v.loading = topology.StreamID(stream), stream.TimeStamp, false
	v.syncedAt = then
	v.mu.Unlock()
	v.cfg.Log.InfoContext(ctx, "informer loaded", slog.Uint64("sequence", v.position))
	if again {
		for _, f := range v.onReload {
			f()
		}
	}
}

// showLoadedContent makes the loaded content visible and runs the callbacks of [Informer.OnLoaded]. The informer
// counts as complete only afterwards. It reports whether an earlier load was visible.
func (v *Informer) showLoadedContent() (again bool) {
	v.applying.Lock()
	defer v.applying.Unlock()
	v.mu.Lock()
	again = v.streamID != ""
	for _, t := range v.tables {
		t.finishLoad()
		t.expireTombstones(time.Now())
	}
	v.mu.Unlock()
	for _, f := range v.onLoad {
		f()
	}
	return again
}

func (v *Informer) followMarkers(ctx context.Context, streamID string) error {
	filters := v.subjectFilters(func(k event.GroupResource) string { return topology.MarkerSubject(v.cfg.Cluster, k) })
	consumer, err := v.cfg.JS.OrderedConsumer(ctx, topology.Sync, orderedConsumerConfig(filters))
	if err != nil {
		return fmt.Errorf("read stream %s: %w", topology.Sync, err)
	}
	v.recordMarkersLeft(consumer.CachedInfo().NumPending)
	return forEachMessage(ctx, consumer, func(msg jetstream.Msg, meta *jetstream.MsgMetadata) error {
		defer v.recordMarkersLeft(meta.NumPending)
		var m eventv1.SnapshotMarker
		if err := proto.Unmarshal(msg.Data(), &m); err != nil {
			v.cfg.Log.WarnContext(ctx, "unusable snapshot marker skipped", slog.String("subject", msg.Subject()), slog.Any("error", err))
			return nil
		}
		return v.storeMarker(ctx, streamID, snapshotMarker{message: &m, sequence: meta.Sequence.Stream, written: meta.Timestamp})
	})
}

// recordMarkersLeft receives the number of snapshot markers that the feed has not read. At zero it records that the
// feed has read all.
func (v *Informer) recordMarkersLeft(left uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.marked = v.marked || left == 0
}

// storeMarker stores a snapshot marker. If a marker names another life of the stream, the marker is old or the stream
// was replaced. In the second case storeMarker returns errReplaced.
func (v *Informer) storeMarker(ctx context.Context, streamID string, m snapshotMarker) error {
	of := snapshotScope{m.message.GetCluster(), event.GroupResource{
		Group: m.message.GetGroup(), Resource: m.message.GetResource(), Target: m.message.GetTarget(),
	}}
	v.mu.Lock()
	// The times are compared too, because another life of the stream has the same sequences.
	if was := v.markers[of]; was.sequence == m.sequence && was.written.Equal(m.written) {
		m.counted, m.told = was.counted, was.told
	}
	v.markers[of] = m
	v.mu.Unlock()
	if m.message.GetStream() != streamID {
		stream, err := v.readStreamInfo(ctx)
		if err != nil {
			return err
		}
		if topology.StreamID(stream) != streamID {
			return errReplaced
		}
	}
	return v.verifyMarkerCounts(ctx)
}

// verifyMarkerCounts compares each new snapshot marker once with the number of objects that the informer holds. If the
// numbers differ, it returns errReplaced, and the informer loads the stream again.
//
// The count of a target kind is not compared if changes followed the marker. Many users may create and delete targets,
// so the count would often differ.
func (v *Informer) verifyMarkerCounts(ctx context.Context) error {
	targets, err := v.compareNewMarkerCounts(ctx)
	v.notifyTargetKinds(targets)
	return err
}

// compareNewMarkerCounts compares the markers that were not compared before. It returns the target kinds among them.
func (v *Informer) compareNewMarkerCounts(ctx context.Context) (targets []snapshotScope, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.loading {
		return nil, nil
	}
	for of, m := range v.markers {
		t, held := v.tableOf(of.kind)
		if !held || m.counted || m.message.GetStream() != v.streamID || m.message.GetLastSequence() > v.position {
			continue
		}
		m.counted = true
		v.markers[of] = m
		if of.kind.Target {
			targets = append(targets, of)
		}
		settled := m.written.Before(v.read) && m.message.GetLastSequence() < v.changed || m.message.GetProblem() != "" || m.message.GetWithdrawn() ||
			v.targeted[of] > m.message.GetLastSequence()
		if size := t.countInSnapshot(of); !settled && size != m.message.GetCount() {
			v.cfg.Log.InfoContext(ctx, "the informer holds another number of objects than the snapshot; reading again", slog.String("snapshot", of.String()),
				slog.Int64("held", size), slog.Int64("counted", m.message.GetCount()))
			return targets, errReplaced
		}
	}
	return targets, nil
}

func (v *Informer) subjectFilters(subject func(event.GroupResource) string) []string {
	filters := make([]string, 0, len(v.tables))
	for kind := range v.tables {
		filters = append(filters, subject(kind))
	}
	return filters
}

const (
	// heartbeat is the interval in which a NATS server shows that its delivery is alive. After two missing heartbeats
	// the client requests the messages again.
	heartbeat = time.Second
	// pullExpiry bounds one pull request.
	pullExpiry = 30 * time.Second
)

// orderedConsumerConfig returns the configuration of a consumer of all messages that match filters. The consumer fails
// after one reset, because a new consumer may read another stream with other sequences. The server removes the
// consumer after one minute without requests.
func orderedConsumerConfig(filters []string) jetstream.OrderedConsumerConfig {
	return jetstream.OrderedConsumerConfig{FilterSubjects: filters, MaxResetAttempts: 1, InactiveThreshold: time.Minute}
}

// forEachMessage passes every message to f until f or the consumer fails.
func forEachMessage(ctx context.Context, consumer jetstream.Consumer, f func(jetstream.Msg, *jetstream.MsgMetadata) error) error {
	messages, err := consumer.Messages(jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(heartbeat))
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	defer messages.Stop() // The end of ctx must not stop messages earlier: a reset could leave a consumer running.
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("read metadata of a message: %w", err)
		}
		if err := f(msg, meta); err != nil {
			return err
		}
	}
}
