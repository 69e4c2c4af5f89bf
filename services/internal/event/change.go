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
	// ResourceVersion compares with others of the same resource and epoch.
	ResourceVersion string
	Generation      int64
	// Deleted means that the object is gone; Object is then its last known state.
	Deleted bool
	// Object is the object as JSON, without managedFields. Nil for metadata-only
	// kinds that were deleted unseen, and when Omitted.
	Object []byte
	// Omitted means that the object was too large for the bus.
	Omitted bool
	// Epoch is that of the cluster that the object lives in; see [NextEpoch].
	Epoch       string
	ObservedAt  time.Time
	Traceparent string
	// PublishedAt is when the bus took the change, or this process wrote it; ExpiresAt is when the bus
	// forgets a deletion. They do not travel; zero when unknown.
	PublishedAt, ExpiresAt time.Time
}

var errIncomplete = errors.New("change lacks a mandatory field")

// ID is the change's identity for deduplication: the same state is the same ID.
func (c Change) ID() string {
	op := "upsert"
	if c.Deleted {
		op = "delete"
	}
	return strings.Join([]string{c.Key.Cluster, c.Epoch, c.UID, c.ResourceVersion, op}, "/")
}

// Decode reads the object into a value.
func (c Change) Decode(into any) error {
	if err := Decode(c.Object, into); err != nil {
		return fmt.Errorf("decoding %s: %w", c.Key, err)
	}
	return nil
}

// Each decodes the objects of a list for take, until an error.
func Each[T any](objects iter.Seq2[Change, error], take func(*T)) error {
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

// Marshal is the wire form of c.
func (c Change) Marshal() ([]byte, error) {
	op := eventv1.Operation_OPERATION_UPSERT
	if c.Deleted {
		op = eventv1.Operation_OPERATION_DELETE
	}
	data, err := proto.Marshal(&eventv1.ResourceChange{
		Ref: c.Key.Ref(), Version: c.Version, Kind: c.Kind, Uid: c.UID,
		ResourceVersion: c.ResourceVersion, Generation: c.Generation, Operation: op,
		Object: c.Object, ObjectOmitted: c.Omitted, Epoch: c.Epoch,
		ObservedAt: timestamppb.New(c.ObservedAt), Traceparent: c.Traceparent,
	})
	if err != nil {
		return nil, fmt.Errorf("encode change of %s: %w", c.Key, err)
	}
	return data, nil
}

// Unmarshal reads the wire form of the change whose subject names key. The subject
// rules: a message that speaks of another object is refused.
func Unmarshal(key Key, data []byte) (Change, error) {
	var m eventv1.ResourceChange
	if err := proto.Unmarshal(data, &m); err != nil {
		return Change{}, fmt.Errorf("decode change of %s: %w", key, err)
	}
	got := KeyOf(m.GetRef())
	if got.Target = key.Target; got != key {
		return Change{}, fmt.Errorf("change on the subject of %s speaks of %s", key, got)
	}
	if m.GetUid() == "" || m.GetResourceVersion() == "" || m.GetOperation() == eventv1.Operation_OPERATION_UNSPECIFIED {
		return Change{}, fmt.Errorf("decode change of %s: uid, resource_version or operation: %w", key, errIncomplete)
	}
	return Change{
		Key: key.shared(), Version: shared(m.GetVersion()), Kind: shared(m.GetKind()), UID: m.GetUid(),
		ResourceVersion: m.GetResourceVersion(), Generation: m.GetGeneration(),
		Deleted: m.GetOperation() == eventv1.Operation_OPERATION_DELETE,
		Object:  m.GetObject(), Omitted: m.GetObjectOmitted(), Epoch: shared(m.GetEpoch()),
		ObservedAt: m.GetObservedAt().AsTime(), Traceparent: m.GetTraceparent(),
	}, nil
}

// shared is k with what many keys have in common held once: services keep 100,000 of them.
func (k Key) shared() Key {
	k.Cluster, k.Group, k.Resource, k.Namespace = shared(k.Cluster), shared(k.Group), shared(k.Resource), shared(k.Namespace)
	return k
}

func shared(text string) string { return unique.Make(text).Value() }

// NewerThan reports whether c replaces old, which is of the same key. The order is that of
// epoch and version. Another cluster's epoch always replaces, and versions that do not compare
// count as newer, so that nothing is lost.
func (c Change) NewerThan(old Change) bool {
	if order, ok := CompareEpochs(c.Epoch, old.Epoch); !ok || order != 0 {
		return !ok || order > 0
	}
	order, ok := compareVersions(c.ResourceVersion, old.ResourceVersion)
	if !ok || order > 0 {
		return true
	}
	// A sweep stamps a deletion with the version of the list that lacked the object.
	return order == 0 && c.Deleted && !old.Deleted
}
