package reflector

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/topology"
)

// ackGrace bounds how long a message may precede its acknowledgement. After it the message counts as another client's.
const ackGrace = 250 * time.Millisecond

// streamAuditor reads the headers of all messages that the stream stores during a term. A message that no
// acknowledgement of this term returned stems from another client. compareDueForeignMessages compares such messages
// with the API server.
type streamAuditor struct {
	reflector *reflector

	mu sync.Mutex
	// position is the last sequence that was read.
	position uint64
	// acked holds acknowledged sequences that were not read yet, foreign the messages that were read and not
	// acknowledged yet.
	acked   map[uint64]struct{}
	foreign map[uint64]foreignMessage
}

// foreignMessage is a message that no acknowledgement returned so far.
type foreignMessage struct {
	subject  string
	sequence uint64
	read     time.Time
}

func newStreamAuditor(r *reflector) *streamAuditor {
	return &streamAuditor{reflector: r, acked: map[uint64]struct{}{}, foreign: map[uint64]foreignMessage{}}
}

// recordAcknowledged records an acknowledgement.
func (a *streamAuditor) recordAcknowledged(sequence uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if delete(a.foreign, sequence); sequence > a.position {
		a.acked[sequence] = struct{}{}
	}
}

// recordMessage records a message on the stream.
func (a *streamAuditor) recordMessage(subject string, sequence uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, own := a.acked[sequence]; !own {
		a.foreign[sequence] = foreignMessage{strings.Clone(subject), sequence, time.Now()}
	}
	a.position = sequence
}

// addForeignMessage adds a message to compare.
func (a *streamAuditor) addForeignMessage(f foreignMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.foreign[f.sequence] = f
}

// takeDueForeignMessages removes and returns the foreign messages that were read a while ago. It drops acknowledgements
// of messages that were replaced before they were read.
func (a *streamAuditor) takeDueForeignMessages(now time.Time) []foreignMessage {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []foreignMessage
	for sequence, f := range a.foreign {
		if now.Sub(f.read) >= ackGrace {
			all = append(all, f)
			delete(a.foreign, sequence)
		}
	}
	for sequence := range a.acked {
		if sequence <= a.position {
			delete(a.acked, sequence)
		}
	}
	return all
}

// startAtStreamEnd records the end of the stream: sweeps read everything before it.
func (a *streamAuditor) startAtStreamEnd(ctx context.Context) error {
	last, err := a.reflector.cfg.Publisher.LastSequence(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.position = last
	return nil
}

// runAudit reads the stream until ctx ends. If the stream was cut short, all kinds are swept, and the audit goes on at
// its end.
func (a *streamAuditor) runAudit(ctx context.Context) {
	go a.compareDueForeignMessages(ctx)
	for ctx.Err() == nil {
		err := a.followStream(ctx)
		if errors.Is(err, errCut) && a.startAtStreamEnd(ctx) == nil {
			for _, k := range a.reflector.allKindReflectors() {
				k.restartRelist()
			}
		}
		if err != nil && ctx.Err() == nil {
			a.reflector.warnings.Do(func() {
				a.reflector.cfg.Log.WarnContext(ctx, "the stream cannot be audited; trying again", "error", err)
			})
		}
		retryBackoff().Wait(ctx, 1)
	}
}

// errCut means that the stream ends before the last message that was read.
var errCut = errors.New("the stream lost its end")

// followStream reads the stream behind the position until an error.
func (a *streamAuditor) followStream(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return a.reflector.cfg.Publisher.FollowChanges(ctx, a.reflector.cfg.Cluster, a.lastReadSequence(), a.recordMessage)
	})
	group.Go(func() error {
		for backoff.Sleep(ctx, a.reflector.cfg.CheckInterval) {
			read := a.lastReadSequence()
			if last, err := a.reflector.cfg.Publisher.LastSequence(ctx); err == nil && last < read {
				return errCut
			}
		}
		return nil
	})
	return group.Wait()
}

func (a *streamAuditor) lastReadSequence() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.position
}

// compareDueForeignMessages has foreign messages compared with the API server, until ctx ends.
func (a *streamAuditor) compareDueForeignMessages(ctx context.Context) {
	for backoff.Sleep(ctx, ackGrace/2) {
		for _, f := range a.takeDueForeignMessages(time.Now()) {
			if err := a.reflector.handleForeignMessage(ctx, f); err != nil && ctx.Err() == nil {
				a.addForeignMessage(f)
				a.reflector.cfg.Log.WarnContext(ctx, "a message of another client is not compared with the API server; trying again",
					"subject", f.subject, "sequence", f.sequence, "error", err)
			}
		}
	}
}

// handleForeignMessage enqueues the comparison of a foreign message with the API server. It removes a message that is
// about no object of a followed kind, and a forged tombstone on a subject of its own.
func (r *reflector) handleForeignMessage(ctx context.Context, f foreignMessage) error {
	key, uid, err := topology.ParseChangeOrTombstoneSubject(f.subject)
	k := r.kindReflectorFor(key)
	if err != nil || k == nil {
		return r.cfg.Publisher.RemoveMessage(ctx, f.sequence)
	}
	by := byAudit
	if uid != "" {
		forged, err := k.isForgedTombstone(ctx, f)
		if err != nil || !forged {
			return err
		}
		if err := r.cfg.Publisher.RemoveMessage(ctx, f.sequence); err != nil {
			return err
		}
		by = byTombstone
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if by == byAudit && k.stream == "" { // The leader before may still write, and may run an earlier release.
		by = bySweep
	}
	k.suspects[namespacedNameOf(key)] = max(k.suspects[namespacedNameOf(key)], by)
	k.lane.changed.Add(publishTask{on: k, name: namespacedNameOf(key)})
	return nil
}

// isForgedTombstone reports whether a tombstone on a subject of its own contradicts the API server: its object exists,
// or its version or epoch is later than any that the API server had. Views would ignore changes of the name with an
// earlier version.
func (k *kindReflector) isForgedTombstone(ctx context.Context, f foreignMessage) (bool, error) {
	stored, err := k.cfg.Publisher.ReadTombstone(ctx, f.subject, f.sequence)
	if errors.Is(err, publish.ErrNoMessage) {
		return false, nil
	}
	if err != nil || stored.Refused != nil { // Views ignore it, but an earlier release wrote none.
		return err == nil, err
	}
	present, version, err := k.readLiveObject(ctx, namespacedNameOf(stored.Key))
	return err == nil && (present.UID == stored.UID && stored.Epoch == present.Epoch || k.isNewerThanAPIServer(stored.Entry, version)), err
}

// isNewerThanAPIServer reports whether a message is of another cluster, of a later epoch, or of a later version than
// the API server's.
func (k *kindReflector) isNewerThanAPIServer(on publish.Entry, version string) bool {
	order, ok := event.CompareEpochs(on.Epoch, k.currentEpoch())
	if on.Epoch == "" || ok && order < 0 {
		return false
	}
	later, err := compareResourceVersions(on.Version, version)
	return !ok || order > 0 || err != nil || later > 0 && version != ""
}

// auditSuspectTombstones adds possibly forged tombstones on subjects of their own to the audit. version is that of
// a list of the API server.
func (k *kindReflector) auditSuspectTombstones(ctx context.Context, version string) error {
	for stored, err := range k.cfg.Publisher.ReadTombstones(ctx, k.cfg.Cluster, k.kind.GroupResource) {
		if err != nil {
			return err
		}
		k.mu.Lock()
		on := k.heads[namespacedNameOf(stored.Key)]
		k.mu.Unlock()
		if on.uid == stored.UID && on.epoch == stored.Epoch || k.isNewerThanAPIServer(stored.Entry, version) {
			k.reflector.audit.addForeignMessage(foreignMessage{topology.TombstoneSubject(stored.Key, stored.UID), stored.Sequence, time.Time{}})
		}
	}
	return nil
}

// kindReflectorFor returns the reflector that keeps an object, or nil.
func (r *reflector) kindReflectorFor(key event.Key) *kindReflector {
	for _, k := range r.allKindReflectors() {
		if k.kind.GroupResource == key.GroupResource &&
			(k.kind.Namespace == "" && !k.isOfOtherReflector(publish.Entry{Key: key}) || k.kind.Namespace != "" && k.kind.Namespace == key.Namespace) {
			return k
		}
	}
	return nil
}
