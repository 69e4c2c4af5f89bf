package view

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

// errReplaced ends a feed because what it loaded is no longer what the stream holds. The view then loads again.
var errReplaced = errors.New("the stream of changes was replaced")

// feed loads the stream, and follows it until an error.
func (v *View) feed(ctx context.Context) error {
	stream, err := v.stream(ctx)
	if err != nil {
		return err
	}
	v.begin()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return v.feedChanges(ctx, stream) })
	group.Go(func() error { return v.feedMarkers(ctx, topology.Incarnation(stream)) })
	group.Go(func() error { return v.verify(ctx) })
	return group.Wait()
}

// stream returns the state of the stream, and sets the clock by it.
func (v *View) stream(ctx context.Context) (*jetstream.StreamInfo, error) {
	asked := bootclock.Now()
	stream, err := v.cfg.JS.Stream(ctx, topology.Changes)
	if err != nil {
		return nil, fmt.Errorf("look up stream %s: %w", topology.Changes, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock = clock{asked, stream.CachedInfo().TimeStamp}
	return stream.CachedInfo(), nil
}

func (v *View) feedChanges(ctx context.Context, stream *jetstream.StreamInfo) error {
	filters := v.filters(func(k event.GroupResource) string { return topology.ChangesFilter(v.cfg.Cluster, k) })
	consumer, err := v.cfg.JS.OrderedConsumer(ctx, topology.Changes,
		ordered(append(filters, topology.BarrierSubject(v.cfg.Cluster), topology.EndSubject(v.cfg.Service))))
	if err != nil {
		return fmt.Errorf("read stream %s: %w", topology.Changes, err)
	}
	v.consumer = consumer.CachedInfo().Name
	now := bootclock.Now()
	end, err := v.markEnd(ctx)
	if err != nil {
		return err
	}
	loaded := false
	return each(ctx, consumer, func(msg jetstream.Msg, meta *jetstream.MsgMetadata) error {
		if !v.continues(meta.Consumer) {
			return errReplaced
		}
		if err := v.take(ctx, msg, meta, end); err != nil {
			return err
		}
		v.at(msg.Subject(), meta.Sequence.Stream)
		if !loaded && meta.Sequence.Stream >= end {
			loaded = true
			v.finish(ctx, stream, now)
		}
		return v.count(ctx)
	})
}

// at records the sequence of the last message read, and of the last change.
func (v *View) at(subject string, sequence uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.position = sequence; topology.IsWake(subject) || topology.IsBarrier(subject) {
		return
	}
	v.changed = sequence
	if k, _, err := topology.ParseChangeSubject(subject); err == nil && k.Target {
		v.targeted[snapshot{k.Cluster, k.GroupResource}] = sequence
	}
}

// take applies one message. It skips a change that cannot be decoded, or stores it without a value ([Config.Blank]):
// the consumer of the service receives it too, and makes it a dead letter. It retries other errors until ctx ends.
func (v *View) take(ctx context.Context, msg jetstream.Msg, meta *jetstream.MsgMetadata, end uint64) error {
	v.brought.Add(1)
	switch {
	case topology.IsWake(msg.Subject()):
		return nil // A mark of the end has no content; only its sequence counts.
	case topology.IsBarrier(msg.Subject()):
		return v.prove(msg, meta, end)
	}
	err := v.takeOnce(ctx, msg)
	if err != nil && !fault.IsTerminal(err) {
		v.cfg.Log.WarnContext(ctx, "the view waits for a change that it cannot take in; trying again",
			slog.String("subject", msg.Subject()), slog.Any("error", err))
		defer v.hinder(nil)
	}
	for err != nil && !fault.IsTerminal(err) {
		v.hinder(err)
		if !backoff.Sleep(ctx, pause) {
			return ctx.Err()
		}
		v.brought.Add(1)
		err = v.takeOnce(ctx, msg)
	}
	if err != nil {
		v.cfg.Log.DebugContext(ctx, "unusable message skipped by the view", slog.String("subject", msg.Subject()), slog.Any("error", err))
	}
	return nil
}

// hinder records the error for which the feed waits; nil means that it goes on.
func (v *View) hinder(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.obstacle = err
}

func (v *View) takeOnce(ctx context.Context, msg jetstream.Msg) error {
	change, err := topology.DecodeChange(msg)
	if err != nil {
		v.noteRefusal(msg.Subject())
		return err
	}
	err = v.Apply(ctx, change)
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.refused, msg.Subject())
	return err
}

// noteRefusal records that the last message about an object was refused. It ignores a tombstone on a subject of its own,
// which is about an earlier object of the name.
func (v *View) noteRefusal(subject string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, uid, err := topology.ParseChangeSubject(subject); err == nil && uid == "" {
		v.refused[subject] = bootclock.Now()
	}
}

// hasOldRefusal reports whether a message was refused long ago and no other followed. It may have been removed since.
func (v *View) hasOldRefusal() bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, at := range v.refused {
		if bootclock.Since(at) > maxRefusal {
			return true
		}
	}
	return false
}

func (v *View) begin() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.position, v.changed, v.loading, v.marked = 0, 0, true, false
	clear(v.epochs)
	clear(v.targeted)
	clear(v.proofs)
	clear(v.refused)
	v.loads.Add(1)
	for _, t := range v.tables {
		t.begin()
	}
	for _, f := range v.onBegin {
		f()
	}
}

// finish publishes the loaded content to readers. The content is everything that the stream held at a time.
func (v *View) finish(ctx context.Context, stream *jetstream.StreamInfo, then time.Duration) {
	again := v.show()
	v.mu.Lock()
	v.incarnation, v.read, v.loading = topology.Incarnation(stream), stream.TimeStamp, false
	v.heard = then
	v.mu.Unlock()
	v.cfg.Log.InfoContext(ctx, "view loaded", slog.Uint64("sequence", v.position))
	if again {
		for _, f := range v.onReload {
			f()
		}
	}
}

// show makes the loaded content visible, and runs the callbacks of [View.OnLoad] before the view can be complete. It
// reports whether an earlier load was visible.
func (v *View) show() (again bool) {
	v.applying.Lock()
	defer v.applying.Unlock()
	v.mu.Lock()
	again = v.incarnation != ""
	for _, t := range v.tables {
		t.finish()
		t.expire(time.Now())
	}
	v.mu.Unlock()
	for _, f := range v.onLoad {
		f()
	}
	return again
}

func (v *View) feedMarkers(ctx context.Context, life string) error {
	filters := v.filters(func(k event.GroupResource) string { return topology.SyncSubject(v.cfg.Cluster, k) })
	consumer, err := v.cfg.JS.OrderedConsumer(ctx, topology.Sync, ordered(filters))
	if err != nil {
		return fmt.Errorf("read stream %s: %w", topology.Sync, err)
	}
	v.readMarkers(consumer.CachedInfo().NumPending)
	return each(ctx, consumer, func(msg jetstream.Msg, meta *jetstream.MsgMetadata) error {
		defer v.readMarkers(meta.NumPending)
		var m eventv1.SnapshotMarker
		if err := proto.Unmarshal(msg.Data(), &m); err != nil {
			v.cfg.Log.WarnContext(ctx, "unusable snapshot marker skipped", slog.String("subject", msg.Subject()), slog.Any("error", err))
			return nil
		}
		return v.mark(ctx, life, marker{message: &m, sequence: meta.Sequence.Stream, written: meta.Timestamp})
	})
}

// readMarkers records that the feed has read all markers, if none is left.
func (v *View) readMarkers(left uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.marked = v.marked || left == 0
}

// mark stores a snapshot marker. If it names another life of the stream than the one that is being read, it is either
// old, or the stream was replaced: then mark returns errReplaced.
func (v *View) mark(ctx context.Context, life string, m marker) error {
	of := snapshot{m.message.GetCluster(), event.GroupResource{
		Group: m.message.GetGroup(), Resource: m.message.GetResource(), Target: m.message.GetTarget(),
	}}
	v.mu.Lock()
	if was := v.markers[of]; was.sequence == m.sequence {
		m.counted, m.told = was.counted, was.told
	}
	v.markers[of] = m
	v.mu.Unlock()
	if m.message.GetStream() != life {
		stream, err := v.stream(ctx)
		if err != nil {
			return err
		}
		if topology.Incarnation(stream) != life {
			return errReplaced
		}
	}
	return v.count(ctx)
}

// count compares each new marker once with the number of objects that the view holds. If they differ, changes may have
// followed the marker, or the view lacks something: reading again settles both. Reading again finds nothing new if the
// marker was written before the stream was read, and changes followed it. The count of targets proves nothing once a
// change followed it, because anybody may create and delete many of them.
func (v *View) count(ctx context.Context) error {
	targets, err := v.countOnce(ctx)
	v.observed(targets)
	return err
}

// countOnce compares the markers that were not compared yet. It returns the kinds of targets among them.
func (v *View) countOnce(ctx context.Context) (targets []snapshot, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.loading {
		return nil, nil
	}
	for of, m := range v.markers {
		t, held := v.table(of.kind)
		if !held || m.counted || m.message.GetStream() != v.incarnation || m.message.GetLastSequence() > v.position {
			continue
		}
		m.counted = true
		v.markers[of] = m
		if of.kind.Target {
			targets = append(targets, of)
		}
		settled := m.written.Before(v.read) && m.message.GetLastSequence() < v.changed || m.message.GetProblem() != "" || m.message.GetWithdrawn() ||
			v.targeted[of] > m.message.GetLastSequence()
		if size := t.size(of); !settled && size != m.message.GetCount() {
			v.cfg.Log.InfoContext(ctx, "view differs from the snapshot in number; reading again", slog.String("snapshot", of.String()),
				slog.Int64("held", size), slog.Int64("counted", m.message.GetCount()))
			return targets, errReplaced
		}
	}
	return targets, nil
}

func (v *View) filters(subject func(event.GroupResource) string) []string {
	filters := make([]string, 0, len(v.tables))
	for kind := range v.tables {
		filters = append(filters, subject(kind))
	}
	return filters
}

const (
	// heartbeat is the interval in which a server that feeds the view must show that it is alive. After two missing
	// ones the client asks another server.
	heartbeat = time.Second
	// pullExpiry bounds one pull request.
	pullExpiry = 30 * time.Second
)

// ordered returns the configuration of a consumer of all messages that match filters. It ends when its one reset fails:
// afterwards it could read another stream, whose sequences mean something else. The server removes it after a minute
// without requests.
func ordered(filters []string) jetstream.OrderedConsumerConfig {
	return jetstream.OrderedConsumerConfig{FilterSubjects: filters, MaxResetAttempts: 1, InactiveThreshold: time.Minute}
}

// each passes every message to f until f or the consumer fails.
func each(ctx context.Context, consumer jetstream.Consumer, f func(jetstream.Msg, *jetstream.MsgMetadata) error) error {
	messages, err := consumer.Messages(jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(heartbeat))
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	defer messages.Stop() // Stop before ctx ends would race with a reset, and leave a consumer running.
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
