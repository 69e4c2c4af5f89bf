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

// StoreReader reads the content of an OpenFGA store.
type StoreReader interface {
	ReadTuples(ctx context.Context, storeID string) iter.Seq2[*openfgav1.Tuple, error]
	ReadObjectTuples(ctx context.Context, storeID, object string) ([]*openfgav1.Tuple, error)
	ReadChanges(ctx context.Context, storeID, token string, since time.Time) ([]*openfgav1.TupleChange, string, error)
}

// relationUser is a tuple without its object.
type relationUser struct{ relation, user string }

// objectTuples are the tuples of one object.
type objectTuples map[relationUser]struct{}

// tupleReplica is a copy of the tuples of IAM's types in one OpenFGA store.
type tupleReplica struct {
	openFGA StoreReader

	// reading serializes reads of the whole store and of its changes. It guards token and last.
	reading sync.Mutex
	token   string
	// last is the time of the newest tuple when the store was loaded, by OpenFGA's clock.
	last time.Time

	mu      sync.Mutex
	storeID string
	// read is the start of the last successful read of changes, by our clock.
	read time.Duration
	// tips holds the last change of each page read since the last [Reconciler.rereadRecentChanges]. back is the start of it, by our
	// clock.
	tips []tupleChange
	back time.Duration
	// loads counts resets: loads of a store, and calls of forget.
	loads   int
	objects map[string]objectTuples
	// doubted holds the objects whose copy may be wrong, with the number of their last doubt.
	doubted map[string]uint64
	// steady holds the objects that were in step at the moment settled.
	steady  map[string]struct{}
	settled inputVersion
	// raised counts the doubts.
	raised uint64
	// waiting holds the keys that wait until an object is in step.
	waiting map[string]map[Key]bool
	// engaged counts the running passes of each object.
	engaged map[string]int
	// refused holds tuples that OpenFGA refused, with the ID of the model.
	refused map[iam.Tuple]string
}

func newReplica(openFGA StoreReader) *tupleReplica {
	m := &tupleReplica{openFGA: openFGA, waiting: map[string]map[Key]bool{}, engaged: map[string]int{}}
	m.dropReplica()
	return m
}

// replaceContent replaces the copy by one of another store.
func (m *tupleReplica) replaceContent(storeID string, objects map[string]objectTuples) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.storeID, m.objects, m.doubted, m.refused = storeID, objects, map[string]uint64{}, map[iam.Tuple]string{}
	m.steady, m.settled = map[string]struct{}{}, inputVersion{}
	m.loads, m.read, m.tips, m.back = m.loads+1, 0, nil, bootclock.Now()
}

// dropReplica drops the copy, so that the next follow loads the store again.
func (m *tupleReplica) dropReplica() { m.replaceContent("", map[string]objectTuples{}) }

// isReplicaOf reports whether this is a copy of the given store.
func (m *tupleReplica) isReplicaOf(storeID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.storeID == storeID
}

// isFresh reports whether this is a copy of the given store, and its changes were read less than 4 seconds ago (fresh).
func (m *tupleReplica) isFresh(storeID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.storeID == storeID && bootclock.Since(m.read) < fresh
}

// loadCount returns the number of resets.
func (m *tupleReplica) loadCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loads
}

// catchUp loads the store if the copy is of another one, and reads its changes. Objects that changed unexpectedly become
// doubted.
func (m *tupleReplica) catchUp(ctx context.Context, storeID string) error {
	m.reading.Lock()
	defer m.reading.Unlock()
	return m.catchUpLocked(ctx, storeID)
}

// catchUpLocked does the work of [tupleReplica.catchUp]. The caller holds reading.
func (m *tupleReplica) catchUpLocked(ctx context.Context, storeID string) error {
	if !m.isReplicaOf(storeID) {
		if err := m.loadStore(ctx, storeID); err != nil {
			return err
		}
	}
	return m.readNewChanges(ctx, storeID)
}

// refreshUnlessFresh calls [tupleReplica.catchUpLocked] unless the copy is fresh.
func (m *tupleReplica) refreshUnlessFresh(ctx context.Context, storeID string) error {
	if m.isFresh(storeID) { // A running read blocks no pass while the copy is fresh.
		return nil
	}
	m.reading.Lock()
	defer m.reading.Unlock()
	if m.isFresh(storeID) {
		return nil
	}
	return m.catchUpLocked(ctx, storeID)
}

// suspectObjects lists the doubted objects.
func (m *tupleReplica) suspectObjects() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.doubted))
}

// markSuspect makes the next pass read an object before it decides, because the result of a write is unknown.
func (m *tupleReplica) markSuspect(object string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.markSuspectLocked(object)
}

// markSuspectLocked marks an object as doubted. The caller holds the lock.
func (m *tupleReplica) markSuspectLocked(object string) {
	m.raised++
	m.doubted[object] = m.raised
	delete(m.steady, object)
}

// isObjectCertain reports whether the copy is of this store and the object is not doubted. The caller holds the lock.
func (m *tupleReplica) isObjectCertain(storeID, object string) bool {
	return m.storeID == storeID && m.doubted[object] == 0
}

// readObjectTuples returns the tuples of an object. If the object is doubted, held reads it from OpenFGA, and strange lists the
// tuples that the copy lacked. The doubt stands until the copy holds the result, so no pass relies on the old copy
// meanwhile.
func (m *tupleReplica) readObjectTuples(ctx context.Context, storeID, object string) (has objectTuples, strange []iam.Tuple, err error) {
	m.mu.Lock()
	doubt, known, is := m.doubted[object], maps.Clone(m.objects[object]), m.storeID == storeID
	m.mu.Unlock()
	if !is {
		return nil, nil, fmt.Errorf("copy of %s: %w", storeID, reconcile.ErrStale)
	}
	if doubt == 0 {
		return known, nil, nil
	}
	read, err := m.openFGA.ReadObjectTuples(ctx, storeID, object)
	if err != nil {
		return nil, nil, err
	}
	held := map[string]objectTuples{}
	for _, t := range read {
		addIAMTuple(held, t.GetKey())
	}
	for e := range held[object] {
		if _, ok := known[e]; !ok {
			strange = append(strange, iam.Tuple{User: e.user, Relation: e.relation, Object: object})
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.storeID == storeID {
		m.setObjectTuples(object, maps.Clone(held[object]))
		if m.doubted[object] == doubt { // A later doubt stays: this read may have missed its cause.
			delete(m.doubted, object)
		}
	}
	return held[object], strange, nil
}

// setObjectTuples stores the tuples of an object. The caller holds the lock.
func (m *tupleReplica) setObjectTuples(object string, has objectTuples) {
	delete(m.steady, object)
	if len(has) == 0 {
		delete(m.objects, object)
	} else {
		m.objects[object] = has
	}
}

// recordWrite applies our own write to the copy.
func (m *tupleReplica) recordWrite(storeID, object string, add, remove []iam.Tuple) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.storeID != storeID {
		return
	}
	has := m.objects[object]
	if has == nil {
		has = objectTuples{}
	}
	for _, t := range remove {
		delete(has, relationUser{t.Relation, t.User})
	}
	for _, t := range add {
		has[relationUser{t.Relation, t.User}] = struct{}{}
	}
	m.setObjectTuples(object, has)
}

// recordRefusal remembers that OpenFGA refused a tuple with a model.
func (m *tupleReplica) recordRefusal(t iam.Tuple, modelID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused[t] = modelID
}

// isAcceptableTuple reports whether OpenFGA has not refused the tuple with this model.
func (m *tupleReplica) isAcceptableTuple(t iam.Tuple, modelID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused[t] != modelID
}

// beginWrite counts a pass that may write an object, until end is called. A pass calls it before it reads the declared
// state.
func (m *tupleReplica) beginWrite(object string) (end func()) {
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

// canHoldTuples reports whether an object may hold tuples: by the copy, because of a doubt, or because a pass may be writing
// it.
func (m *tupleReplica) canHoldTuples(object string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects[object]) > 0 || m.doubted[object] > 0 || m.engaged[object] > 0
}

// objectsWithTuples lists the objects that hold tuples, by the copy.
func (m *tupleReplica) objectsWithTuples() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.objects))
}

// isEmpty reports whether the copy holds no tuples and no doubts.
func (m *tupleReplica) isEmpty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects)+len(m.doubted) == 0
}

// tupleCount returns the number of tuples of an object, by the copy.
func (m *tupleReplica) tupleCount(object string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects[object])
}

// hasExactlyDesired reports whether an object holds exactly the wanted tuples, without a doubt. It caches true until something
// changes, because many keys depend on one object.
func (m *tupleReplica) hasExactlyDesired(n *iamSnapshot, object string) bool {
	if m.isVerifiedAt(n, object) {
		return true
	}
	wanted := n.desiredTuples(object)
	m.mu.Lock()
	defer m.mu.Unlock()
	has := m.objects[object]
	holds := m.isObjectCertain(n.of.storeID, object) && len(wanted) == len(has) && !slices.ContainsFunc(wanted, func(t iam.Tuple) bool {
		_, ok := has[relationUser{t.Relation, t.User}]
		return !ok
	})
	if holds {
		m.markVerified(object, n.moment)
	}
	return holds
}

// markVerified records that an object is in step at a moment. The caller holds the lock. A newer moment drops all older
// results, which bounds their number.
func (m *tupleReplica) markVerified(object string, at inputVersion) {
	if at.changes < m.settled.changes {
		return
	}
	if at != m.settled {
		m.steady, m.settled = map[string]struct{}{}, at
	}
	m.steady[object] = struct{}{}
}

// isVerifiedAt reports whether [tupleReplica.markVerified] recorded the object at the moment of n, and its tuples have not changed
// since.
func (m *tupleReplica) isVerifiedAt(n *iamSnapshot, object string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.steady[object]
	return ok && m.settled == n.moment && m.storeID == n.of.storeID
}

// replicatedTuples returns the tuples of an object by the copy, and whether they are sure.
func (m *tupleReplica) replicatedTuples(storeID, object string) (is objectTuples, sure bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.objects[object]), m.isObjectCertain(storeID, object)
}
