package derived

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

const (
	// fresh bounds the age of the copy, as far as writes of others are concerned. A new leader reads first. A pass
	// waits while a read takes longer than this.
	fresh = 4 * time.Second
)

// Reader reads the content of an OpenFGA store.
type Reader interface {
	ReadTuples(ctx context.Context, storeID string) iter.Seq2[*openfgav1.Tuple, error]
	ReadObject(ctx context.Context, storeID, object string) ([]*openfgav1.Tuple, error)
	ReadChanges(ctx context.Context, storeID, token string, since time.Time) ([]*openfgav1.TupleChange, string, error)
}

// edge is a tuple without its object.
type edge struct{ relation, user string }

// edges are the tuples of one object.
type edges map[edge]struct{}

// replica is a copy of the tuples of IAM's types in one OpenFGA store.
type replica struct {
	openFGA Reader

	// reading serializes reads of the whole store and of its changes. It guards token and last.
	reading sync.Mutex
	token   string
	// last is the time of the newest tuple when the store was loaded, by OpenFGA's clock.
	last time.Time

	mu      sync.Mutex
	storeID string
	// read is the start of the last successful read of changes, by our clock.
	read time.Duration
	// tips holds the last change of each page read since the last rereadChanges. back is the start of that rereadChanges, by our
	// clock.
	tips []change
	back time.Duration
	// loads counts resets: loads of a store, and calls of forget.
	loads   int
	objects map[string]edges
	// doubted holds the objects whose copy may be wrong, with the number of their last doubt.
	doubted map[string]uint64
	// steady holds the objects that were in step at the moment settled.
	steady  map[string]struct{}
	settled moment
	// raised counts the doubts.
	raised uint64
	// waiting holds the keys that wait until an object is in step.
	waiting map[string]map[Key]bool
	// engaged counts the running passes of each object.
	engaged map[string]int
	// refused holds tuples that OpenFGA refused, with the ID of the model.
	refused map[iam.Tuple]string
}

func newReplica(openFGA Reader) *replica {
	m := &replica{openFGA: openFGA, waiting: map[string]map[Key]bool{}, engaged: map[string]int{}}
	m.forgetCopy()
	return m
}

// resetTo replaces the copy by one of another store.
func (m *replica) resetTo(storeID string, objects map[string]edges) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.storeID, m.objects, m.doubted, m.refused = storeID, objects, map[string]uint64{}, map[iam.Tuple]string{}
	m.steady, m.settled = map[string]struct{}{}, moment{}
	m.loads, m.read, m.tips, m.back = m.loads+1, 0, nil, bootclock.Now()
}

// forgetCopy drops the copy, so that the next follow loads the store again.
func (m *replica) forgetCopy() { m.resetTo("", map[string]edges{}) }

// isOf reports whether this is a copy of the given store.
func (m *replica) isOf(storeID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.storeID == storeID
}

// isFresh reports whether this is a copy of the given store, and its changes were read less than 4 seconds ago (fresh).
func (m *replica) isFresh(storeID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.storeID == storeID && bootclock.Since(m.read) < fresh
}

// loadCount returns the number of resets.
func (m *replica) loadCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loads
}

// followStore loads the store if the copy is of another one, and reads its changes. Objects that changed unexpectedly become
// doubted.
func (m *replica) followStore(ctx context.Context, storeID string) error {
	m.reading.Lock()
	defer m.reading.Unlock()
	return m.followLocked(ctx, storeID)
}

// followLocked does the work of [replica.followStore]. The caller holds reading.
func (m *replica) followLocked(ctx context.Context, storeID string) error {
	if !m.isOf(storeID) {
		if err := m.loadStore(ctx, storeID); err != nil {
			return err
		}
	}
	return m.catchUp(ctx, storeID)
}

// refreshCopy calls [replica.followLocked] unless the copy is fresh.
func (m *replica) refreshCopy(ctx context.Context, storeID string) error {
	if m.isFresh(storeID) { // A running read blocks no pass while the copy is fresh.
		return nil
	}
	m.reading.Lock()
	defer m.reading.Unlock()
	if m.isFresh(storeID) {
		return nil
	}
	return m.followLocked(ctx, storeID)
}

// suspects lists the doubted objects.
func (m *replica) suspects() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.doubted))
}

// markSuspect makes the next pass read an object before it decides, because the result of a write is unknown.
func (m *replica) markSuspect(object string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.markSuspectLocked(object)
}

// markSuspectLocked marks an object as doubted. The caller holds the lock.
func (m *replica) markSuspectLocked(object string) {
	m.raised++
	m.doubted[object] = m.raised
	delete(m.steady, object)
}

// isSure reports whether the copy is of this store and the object is not doubted. The caller holds the lock.
func (m *replica) isSure(storeID, object string) bool {
	return m.storeID == storeID && m.doubted[object] == 0
}

// heldTuples returns the tuples of an object. If the object is doubted, held reads it from OpenFGA, and strange lists the
// tuples that the copy lacked. The doubt stands until the copy holds the result, so no pass relies on the old copy
// meanwhile.
func (m *replica) heldTuples(ctx context.Context, storeID, object string) (has edges, strange []iam.Tuple, err error) {
	m.mu.Lock()
	doubt, known, is := m.doubted[object], maps.Clone(m.objects[object]), m.storeID == storeID
	m.mu.Unlock()
	if !is {
		return nil, nil, fmt.Errorf("copy of %s: %w", storeID, reconcile.ErrStale)
	}
	if doubt == 0 {
		return known, nil, nil
	}
	read, err := m.openFGA.ReadObject(ctx, storeID, object)
	if err != nil {
		return nil, nil, err
	}
	held := map[string]edges{}
	for _, t := range read {
		putTuple(held, t.GetKey())
	}
	for e := range held[object] {
		if _, ok := known[e]; !ok {
			strange = append(strange, iam.Tuple{User: e.user, Relation: e.relation, Object: object})
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.storeID == storeID {
		m.keepTuples(object, maps.Clone(held[object]))
		if m.doubted[object] == doubt { // A later doubt stays: this read may have missed its cause.
			delete(m.doubted, object)
		}
	}
	return held[object], strange, nil
}

// keepTuples stores the tuples of an object. The caller holds the lock.
func (m *replica) keepTuples(object string, has edges) {
	delete(m.steady, object)
	if len(has) == 0 {
		delete(m.objects, object)
	} else {
		m.objects[object] = has
	}
}

// recordWrite applies our own write to the copy.
func (m *replica) recordWrite(storeID, object string, add, remove []iam.Tuple) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.storeID != storeID {
		return
	}
	has := m.objects[object]
	if has == nil {
		has = edges{}
	}
	for _, t := range remove {
		delete(has, edge{t.Relation, t.User})
	}
	for _, t := range add {
		has[edge{t.Relation, t.User}] = struct{}{}
	}
	m.keepTuples(object, has)
}

// recordRefusal remembers that OpenFGA refused a tuple with a model.
func (m *replica) recordRefusal(t iam.Tuple, modelID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused[t] = modelID
}

// canTake reports whether OpenFGA has not refused the tuple with this model.
func (m *replica) canTake(t iam.Tuple, modelID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused[t] != modelID
}

// beginWrite counts a pass that may write an object, until end is called. A pass calls it before it reads the declared
// state.
func (m *replica) beginWrite(object string) (end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.engaged[object]++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.engaged[object]--; m.engaged[object] == 0 {
			delete(m.engaged, object)
		}
	}
}

// mayHold reports whether an object may hold tuples: by the copy, because of a doubt, or because a pass may be writing
// it.
func (m *replica) mayHold(object string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects[object]) > 0 || m.doubted[object] > 0 || m.engaged[object] > 0
}

// knownObjects lists the objects that hold tuples, by the copy.
func (m *replica) knownObjects() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.objects))
}

// isEmpty reports whether the copy holds no tuples and no doubts.
func (m *replica) isEmpty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects)+len(m.doubted) == 0
}

// tupleCount returns the number of tuples of an object, by the copy.
func (m *replica) tupleCount(object string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects[object])
}

// hasExactly reports whether an object holds exactly the wanted tuples, without a doubt. It caches true until something
// changes, because many keys depend on one object.
func (m *replica) hasExactly(n *snapshot, object string) bool {
	if m.isSteady(n, object) {
		return true
	}
	wanted := n.desiredTuples(object)
	m.mu.Lock()
	defer m.mu.Unlock()
	has := m.objects[object]
	holds := m.isSure(n.of.storeID, object) && len(wanted) == len(has) && !slices.ContainsFunc(wanted, func(t iam.Tuple) bool {
		_, ok := has[edge{t.Relation, t.User}]
		return !ok
	})
	if holds {
		m.markVerified(object, n.moment)
	}
	return holds
}

// markVerified records that an object is in step at a moment. The caller holds the lock. A newer moment drops all older
// results, which bounds their number.
func (m *replica) markVerified(object string, at moment) {
	if at.changes < m.settled.changes {
		return
	}
	if at != m.settled {
		m.steady, m.settled = map[string]struct{}{}, at
	}
	m.steady[object] = struct{}{}
}

// isSteady reports whether [replica.markVerified] recorded the object at the moment of n, and its tuples have not changed
// since.
func (m *replica) isSteady(n *snapshot, object string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.steady[object]
	return ok && m.settled == n.moment && m.storeID == n.of.storeID
}

// copyOf returns the tuples of an object by the copy, and whether they are sure.
func (m *replica) copyOf(storeID, object string) (is edges, sure bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.objects[object]), m.isSure(storeID, object)
}
