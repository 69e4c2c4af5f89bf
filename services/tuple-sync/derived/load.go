package derived

import (
	"context"
	"maps"
	"slices"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/iam"
)

// loadStore reads a whole store and replaces the copy.
func (m *tupleReplica) loadStore(ctx context.Context, storeID string) error {
	held, last, err := m.readIAMTuples(ctx, storeID)
	if err != nil {
		return err
	}
	m.token, m.last = "", last
	m.replaceContent(storeID, held)
	return nil
}

// markDifferingObjects reads the whole store, and marks objects as suspect that differ from the replica. Writes during the read also
// cause doubts, which the next pass of the object clears.
func (m *tupleReplica) markDifferingObjects(ctx context.Context, storeID string) error {
	held, _, err := m.readIAMTuples(ctx, storeID)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.storeID != storeID {
		return nil
	}
	for _, object := range slices.Concat(slices.Collect(maps.Keys(held)), slices.Collect(maps.Keys(m.objects))) {
		if !maps.Equal(held[object], m.objects[object]) {
			m.markSuspectLocked(object)
		}
	}
	return nil
}

// readIAMTuples returns the tuples of IAM's types in a store, and the time of its newest tuple of any type.
func (m *tupleReplica) readIAMTuples(ctx context.Context, storeID string) (held map[string]objectTuples, last time.Time, err error) {
	held = map[string]objectTuples{}
	for t, err := range m.openFGA.ReadTuples(ctx, storeID) {
		if err != nil {
			return nil, last, err
		}
		if at := t.GetTimestamp().AsTime(); at.After(last) {
			last = at
		}
		addIAMTuple(held, t.GetKey())
	}
	return held, last, nil
}

func addIAMTuple(objects map[string]objectTuples, t *openfgav1.TupleKey) {
	if !iam.IsIAMObject(t.GetObject()) {
		return
	}
	if objects[t.GetObject()] == nil {
		objects[t.GetObject()] = objectTuples{}
	}
	objects[t.GetObject()][relationUser{t.GetRelation(), t.GetUser()}] = struct{}{}
}
