package event

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unique"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
)

// Change is the newest state of one object.
type Change struct {
	Key           Key
	Version, Kind string
	UID           string
	// ResourceVersion is comparable within one resource and one epoch.
	ResourceVersion string
	Generation      int64
	// Deleted means that the object was deleted. Object then holds its last known state.
	Deleted bool
	// Object is the object as JSON, without managedFields. It is nil if Omitted is true, or if an object of a
	// metadata-only kind was deleted while the watcher did not run.
	Object []byte
	// Omitted means that the object was too large for NATS.
	Omitted bool
	// Epoch is the epoch of the object's cluster; see [NextEpoch].
	Epoch       string
	ObservedAt  time.Time
	Traceparent string
	// Sequence is the position in the stream. It is 0 for an answer of the API server and for a tombstone with its own
	// subject. It is not encoded.
	Sequence uint64
	// TombstoneSequence is the position of a tombstone with its own subject. Such a tombstone is for an object whose
	// name another object has. It is not encoded.
	TombstoneSequence uint64
	// PublishedAt is the time at which the stream stored the change, or at which this process wrote it. ExpiresAt is
	// the time at which the stream removes a tombstone. Both are not encoded; zero means unknown.
	PublishedAt, ExpiresAt time.Time
}

var errIncomplete = errors.New("change lacks a mandatory field")

// DeduplicationID returns a text that identifies a state, for deduplication by NATS.
func (c Change) DeduplicationID() string {
	op := "upsert"
	if c.Deleted {
		op = "delete"
	}
	return strings.Join([]string{c.Key.Cluster, c.Epoch, c.UID, c.ResourceVersion, op}, "/")
}

// Decode decodes the object.
func (c Change) Decode(into any) error {
	if err := DecodeObject(c.Object, into); err != nil {
		return fmt.Errorf("decoding %s: %w", c.Key, err)
	}
	return nil
}

// DecodeEach decodes the objects of a list and passes them to take, until an error.
func DecodeEach[T any](objects iter.Seq2[Change, error], take func(*T)) error {
	for change, err := range objects {
		if err != nil {
			return err
		}
		value := new(T)
		if err := change.Decode(value); err != nil {
			return err
		}
		take(value)
	}
	return nil
}

// Marshal encodes c for a NATS message.
func (c Change) Marshal() ([]byte, error) {
	op := eventv1.Operation_OPERATION_UPSERT
	if c.Deleted {
		op = eventv1.Operation_OPERATION_DELETE
	}
	data, err := proto.Marshal(&eventv1.ResourceChange{
		Ref: c.Key.ToObjectRef(), Version: c.Version, Kind: c.Kind, Uid: c.UID,
		ResourceVersion: c.ResourceVersion, Generation: c.Generation, Operation: op,
		Object: c.Object, ObjectOmitted: c.Omitted, Epoch: c.Epoch,
		ObservedAt: timestamppb.New(c.ObservedAt), Traceparent: c.Traceparent,
	})
	if err != nil {
		return nil, fmt.Errorf("encode change of %s: %w", c.Key, err)
	}
	return data, nil
}

// UnmarshalChange decodes a change that arrived on the subject of key. It returns an error if the message is about
// another object.
func UnmarshalChange(key Key, data []byte) (Change, error) {
	var m eventv1.ResourceChange
	if err := proto.Unmarshal(data, &m); err != nil {
		return Change{}, fmt.Errorf("decode change of %s: %w", key, err)
	}
	got := KeyFromRef(m.GetRef())
	if got.Target = key.Target; got != key {
		return Change{}, fmt.Errorf("change on the subject of %s speaks of %s", key, got)
	}
	if m.GetUid() == "" || m.GetResourceVersion() == "" || m.GetOperation() == eventv1.Operation_OPERATION_UNSPECIFIED {
		return Change{}, fmt.Errorf("decode change of %s: uid, resource_version or operation: %w", key, errIncomplete)
	}
	return Change{
		Key: key.internStrings(), Version: intern(m.GetVersion()), Kind: intern(m.GetKind()), UID: m.GetUid(),
		ResourceVersion: m.GetResourceVersion(), Generation: m.GetGeneration(),
		Deleted: m.GetOperation() == eventv1.Operation_OPERATION_DELETE,
		Object:  m.GetObject(), Omitted: m.GetObjectOmitted(), Epoch: intern(m.GetEpoch()),
		ObservedAt: m.GetObservedAt().AsTime(), Traceparent: m.GetTraceparent(),
	}, nil
}

// internStrings returns k with interned strings. Services hold 100,000 keys, and most parts repeat.
func (k Key) internStrings() Key {
	k.Cluster, k.Group, k.Resource, k.Namespace = intern(k.Cluster), intern(k.Group), intern(k.Resource), intern(k.Namespace)
	return k
}

func intern(text string) string { return unique.Make(text).Value() }

// Replaces reports whether c replaces old, a change of the same key. If the stream brought both on the subject of the
// key, the later sequence decides. A live state also replaces a tombstone with its own subject if the tombstone is
// earlier on the stream. In all other cases [Change.IsNewerThan] decides.
func (c Change) Replaces(old Change) bool {
	switch {
	case c.Sequence > 0 && old.Sequence > 0:
		return c.Sequence > old.Sequence
	case c.Sequence > old.TombstoneSequence && old.TombstoneSequence > 0 && !c.Deleted:
		return true
	}
	return c.IsNewerThan(old)
}

// IsNewerThan reports whether c is newer than old, a change of the same key. It compares the epoch, then the
// resourceVersion. If they are not comparable, c counts as newer, so that no change is lost.
func (c Change) IsNewerThan(old Change) bool {
	if order, ok := CompareEpochs(c.Epoch, old.Epoch); !ok || order != 0 {
		return !ok || order > 0
	}
	order, ok := compareResourceVersions(c.ResourceVersion, old.ResourceVersion)
	if !ok || order > 0 {
		return true
	}
	// The watcher gives a missed deletion the resourceVersion of the list in which the object is missing.
	return order == 0 && c.Deleted && !old.Deleted
}
