package reflector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// These are the causes of a correction.
const (
	// causeOld means that the stream held an earlier state: an acknowledgement was lost, or a leader before wrote it.
	causeOld = "old"
	// causeRefused means that the parts of the message did not agree.
	causeRefused = "refused"
	// causeVersion means that its version was above that of the API server, or its epoch of another cluster. causeContent
	// means that it had other content at the same version.
	causeVersion = "version"
	causeContent = "content"
	// causeBarrier means that another client wrote a barrier.
	causeBarrier = "barrier"
)

// suspectSource is the part of the reflector that found a message to correct.
type suspectSource int

const (
	// byNone means that no message was found.
	byNone suspectSource = iota
	// bySweep means that a sweep or a publication met the message, byAudit that another client wrote it in this term.
	bySweep
	byAudit
	// byTombstone means that another client wrote a tombstone on a subject of its own, which was removed.
	byTombstone
)

// unknownUID is the UID in the tombstone that replaces a refused message.
const unknownUID = "unknown"

// entryOfStoredMessage returns the head of a stored message. The meaning is that of the body, if it was read: a forged
// one may have any headers. The head of a message that was refused, or is of another cluster, has no version.
func (k *kindReflector) entryOfStoredMessage(stored publish.StoredMessage) publish.Entry {
	head := stored.Entry
	if stored.Refused != nil || k.reflector.isForeignEpoch(head.Epoch) {
		return publish.Entry{Key: head.Key, Sequence: head.Sequence}
	}
	if !head.Deleted && len(stored.Change.Object) > 0 {
		head.ContentHash, _ = k.cfg.Source.ContentHash(k.kind, stored.Change) // An object that cannot be decoded has no meaning.
	}
	return head
}

// correctPublishedMessage compares the message about an object with the API server, and replaces it if the two differ,
// or if a forged tombstone was removed. It returns the message that the stream then holds. After
// [publish.ErrMessageReplaced] the caller must call it again, so that the next attempt reads the API server again.
func (k *kindReflector) correctPublishedMessage(ctx context.Context, name types.NamespacedName, by suspectSource) (publish.Entry, error) {
	last, err := k.cfg.Publisher.LastChange(ctx, k.keyOf(name))
	if err != nil && !isMissingOrMalformed(err) {
		return publish.Entry{}, err
	}
	present, version, err := k.readLiveObject(ctx, name)
	if err != nil {
		return publish.Entry{}, err
	}
	on := k.entryOfStoredMessage(last)
	on.Key = k.keyOf(name)
	if by != byTombstone && k.matchesLiveObject(on, present, version) {
		return on, nil
	}
	want, opts := present.Change, k.publishOptions(present.ContentHash)
	if want.UID == "" && last.Sequence == 0 {
		k.reportCorrection(ctx, last, event.Change{Key: on.Key}, causeVersion, by)
		return on, nil
	}
	if want.UID == "" {
		want = tombstoneOf(last, version)
		want.Key, want.Epoch, want.ObservedAt = on.Key, k.currentEpoch(), time.Now()
	}
	cause := reasonForCorrection(last, want)
	if k.reflector.isForeignEpoch(last.Epoch) {
		cause = causeVersion
	}
	if by == byTombstone {
		cause = causeVersion
	}
	opts.Force = cause != causeOld
	expected := last.Sequence
	if !opts.Force && (last.UID != want.UID || last.Epoch != want.Epoch) {
		expected = 0 // The publisher must read the present message.
	}
	head, err := k.publishTracedChange(ctx, want, expected, opts)
	if err == nil {
		k.reportCorrection(ctx, last, want, cause, by)
	}
	return head, err
}

// readLiveObject reads an object from the API server, and the version of the answer. The UID is empty if the object
// does not exist.
func (k *kindReflector) readLiveObject(ctx context.Context, name types.NamespacedName) (o source.Object, version string, err error) {
	page, err := k.cfg.Source.ListNamed(ctx, k.kind, name.Name)
	if err != nil && !errors.Is(err, source.ErrNotServed) {
		return o, "", fmt.Errorf("compare %s with the stream: %w", k.keyOf(name), err)
	}
	for _, found := range page.Objects {
		if namespacedNameOf(found.Key) == name {
			found.Epoch = k.currentEpoch()
			return found, page.Version, nil
		}
	}
	return o, page.Version, nil
}

// currentEpoch returns the kind's epoch.
func (k *kindReflector) currentEpoch() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.epoch
}

// matchesLiveObject reports whether a message holds the state of an object at the API server, which answered with a
// version. The UID of present is empty if the object does not exist.
func (k *kindReflector) matchesLiveObject(on publish.Entry, present source.Object, version string) bool {
	if present.UID != "" {
		is := compactEntry{on.Sequence, on.UID, on.Epoch, on.Version, on.ContentHash}
		return !on.Deleted && on.UID == present.UID && is.matchesContentOf(present)
	}
	order, err := compareResourceVersions(on.Version, version)
	return on.Sequence == 0 || on.Deleted && err == nil && (order <= 0 || version == "")
}

// tombstoneOf returns the tombstone for the object of a message. version is that of the API server, if it is known.
func tombstoneOf(last publish.StoredMessage, version string) event.Change {
	c := last.Change
	if last.Refused != nil {
		c = event.Change{UID: unknownUID, ResourceVersion: "1"}
	}
	c.Deleted = true
	if version != "" {
		c.ResourceVersion = version
	}
	return c
}

// reasonForCorrection returns why a message must be replaced by a state.
func reasonForCorrection(last publish.StoredMessage, want event.Change) string {
	was := last.Change
	order, err := compareResourceVersions(was.ResourceVersion, want.ResourceVersion)
	switch {
	case last.Refused != nil:
		return causeRefused
	case last.Sequence == 0 || was.Epoch != want.Epoch && want.IsNewerThan(was):
		return causeOld
	case err != nil || order > 0 || was.Epoch != want.Epoch:
		return causeVersion
	case order == 0 && !want.Deleted:
		return causeContent
	}
	return causeOld
}

// reportCorrection counts and logs a correction.
func (k *kindReflector) reportCorrection(ctx context.Context, last publish.StoredMessage, is event.Change, cause string, by suspectSource) {
	k.cfg.Metrics.corrections.WithLabelValues(cause).Inc()
	if cause == causeOld {
		return
	}
	k.mu.Lock()
	k.ahead = ""
	k.mu.Unlock()
	k.cfg.Log.ErrorContext(ctx, "a message contradicted the API server and was replaced: the watcher's NATS account may be stolen",
		"key", is.Key.String(), "cause", cause, "sequence", last.Sequence, "version", last.Version, "is", is.ResourceVersion, "refused", last.Refused)
	k.reflector.reportForgery(ctx, is, cause, by != bySweep || cause == causeVersion)
}
