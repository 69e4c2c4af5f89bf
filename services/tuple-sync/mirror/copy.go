package mirror

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

// mirrored is a copy of the tuples of IAM's types in one OpenFGA store.
type mirrored struct {
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
	// tips holds the last change of each page read since the last lookBack. back is the start of that lookBack, by our
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

func newMirrored(openFGA Reader) *mirrored {
	m := &mirrored{openFGA: openFGA, waiting: map[string]map[Key]bool{}, engaged: map[string]int{}}
	m.forget()
	return m
}

// reset replaces the copy by one of another store.
func (m *mirrored) reset(storeID string, objects map[string]edges) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.storeID, m.objects, m.doubted, m.refused = storeID, objects, map[string]uint64{}, map[iam.Tuple]string{}
	m.steady, m.settled = map[string]struct{}{}, moment{}
	m.loads, m.read, m.tips, m.back = m.loads+1, 0, nil, bootclock.Now()
}

// forget drops the copy, so that the next follow loads the store again.
func (m *mirrored) forget() { m.reset("", map[string]edges{}) }

// is reports whether this is a copy of the given store.
func (m *mirrored) is(storeID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.storeID == storeID
}

// isFresh reports whether this is a copy of the given store, and its changes were read less than 4 seconds ago (fresh).
func (m *mirrored) isFresh(storeID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.storeID == storeID && bootclock.Since(m.read) < fresh
}

// loaded returns the number of resets.
func (m *mirrored) loaded() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loads
}

// follow loads the store if the copy is of another one, and reads its changes. Objects that changed unexpectedly become
// doubted.
func (m *mirrored) follow(ctx context.Context, storeID string) error {
	m.reading.Lock()
	defer m.reading.Unlock()
	return m.followed(ctx, storeID)
}

// followed does the work of [mirrored.follow]. The caller holds reading.
func (m *mirrored) followed(ctx context.Context, storeID string) error {
	if !m.is(storeID) {
		if err := m.load(ctx, storeID); err != nil {
			return err
		}
	}
	return m.catchUp(ctx, storeID)
}

// refresh calls [mirrored.followed] unless the copy is fresh.
func (m *mirrored) refresh(ctx context.Context, storeID string) error {
	if m.isFresh(storeID) { // A running read blocks no pass while the copy is fresh.
		return nil
	}
	m.reading.Lock()
	defer m.reading.Unlock()
	if m.isFresh(storeID) {
		return nil
	}
	return m.followed(ctx, storeID)
}

// doubts lists the doubted objects.
func (m *mirrored) doubts() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.doubted))
}

// doubt makes the next pass read an object before it decides, because the result of a write is unknown.
func (m *mirrored) doubt(object string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.raise(object)
}

// raise marks an object as doubted. The caller holds the lock.
func (m *mirrored) raise(object string) {
	m.raised++
	m.doubted[object] = m.raised
	delete(m.steady, object)
}

// sure reports whether the copy is of this store and the object is not doubted. The caller holds the lock.
func (m *mirrored) sure(storeID, object string) bool {
	return m.storeID == storeID && m.doubted[object] == 0
}

// held returns the tuples of an object. If the object is doubted, held reads it from OpenFGA, and strange lists the
// tuples that the copy lacked. The doubt stands until the copy holds the result, so no pass relies on the old copy
// meanwhile.
func (m *mirrored) held(ctx context.Context, storeID, object string) (has edges, strange []iam.Tuple, err error) {
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
		put(held, t.GetKey())
	}
	for e := range held[object] {
		if _, ok := known[e]; !ok {
			strange = append(strange, iam.Tuple{User: e.user, Relation: e.relation, Object: object})
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.storeID == storeID {
		m.keep(object, maps.Clone(held[object]))
		if m.doubted[object] == doubt { // A later doubt stays: this read may have missed its cause.
			delete(m.doubted, object)
		}
	}
	return held[object], strange, nil
}

// keep stores the tuples of an object. The caller holds the lock.
func (m *mirrored) keep(object string, has edges) {
	delete(m.steady, object)
	if len(has) == 0 {
		delete(m.objects, object)
	} else {
		m.objects[object] = has
	}
}

// wrote applies our own write to the copy.
func (m *mirrored) wrote(storeID, object string, add, remove []iam.Tuple) {
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
	m.keep(object, has)
}

// refuse remembers that OpenFGA refused a tuple with a model.
func (m *mirrored) refuse(t iam.Tuple, modelID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused[t] = modelID
}

// takes reports whether OpenFGA has not refused the tuple with this model.
func (m *mirrored) takes(t iam.Tuple, modelID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused[t] != modelID
}

// engage counts a pass that may write an object, until end is called. A pass calls it before it reads the declared
// state.
func (m *mirrored) engage(object string) (end func()) {
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
func (m *mirrored) mayHold(object string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects[object]) > 0 || m.doubted[object] > 0 || m.engaged[object] > 0
}

// known lists the objects that hold tuples, by the copy.
func (m *mirrored) known() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.objects))
}

// empty reports whether the copy holds no tuples and no doubts.
func (m *mirrored) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects)+len(m.doubted) == 0
}

// size returns the number of tuples of an object, by the copy.
func (m *mirrored) size(object string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects[object])
}

// holds reports whether an object holds exactly the wanted tuples, without a doubt. It caches true until something
// changes, because many keys depend on one object.
func (m *mirrored) holds(n *snapshot, object string) bool {
	if m.isSteady(n, object) {
		return true
	}
	wanted := n.wanted(object)
	m.mu.Lock()
	defer m.mu.Unlock()
	has := m.objects[object]
	holds := m.sure(n.of.storeID, object) && len(wanted) == len(has) && !slices.ContainsFunc(wanted, func(t iam.Tuple) bool {
		_, ok := has[edge{t.Relation, t.User}]
		return !ok
	})
	if holds {
		m.settle(object, n.moment)
	}
	return holds
}

// settle records that an object is in step at a moment. The caller holds the lock. A newer moment drops all older
// results, which bounds their number.
func (m *mirrored) settle(object string, at moment) {
	if at.changes < m.settled.changes {
		return
	}
	if at != m.settled {
		m.steady, m.settled = map[string]struct{}{}, at
	}
	m.steady[object] = struct{}{}
}

// isSteady reports whether [mirrored.settle] recorded the object at the moment of n, and its tuples have not changed
// since.
func (m *mirrored) isSteady(n *snapshot, object string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.steady[object]
	return ok && m.settled == n.moment && m.storeID == n.of.storeID
}

// has returns the tuples of an object by the copy, and whether they are sure.
func (m *mirrored) has(storeID, object string) (is edges, sure bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.objects[object]), m.sure(storeID, object)
}
