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
	// fresh is how old the copy may be, as to what others write. Who takes over from another replica reads first, and whoever
	// reads for longer than that is waited for.
	fresh = 4 * time.Second
)

// Reader reads what an OpenFGA store holds.
type Reader interface {
	ReadTuples(ctx context.Context, storeID string) iter.Seq2[*openfgav1.Tuple, error]
	ReadObject(ctx context.Context, storeID, object string) ([]*openfgav1.Tuple, error)
	ReadChanges(ctx context.Context, storeID, token string, since time.Time) ([]*openfgav1.TupleChange, string, error)
}

// edge is a tuple without its object.
type edge struct{ relation, user string }

// edges are the tuples of one object.
type edges map[edge]struct{}

// mirrored is a copy of what an OpenFGA store holds of IAM's types.
type mirrored struct {
	openFGA Reader

	// reading is held by who reads the store as a whole, or its changes.
	reading sync.Mutex
	token   string
	// last is when the store changed last before its changes were followed, by its own clock.
	last time.Time

	mu      sync.Mutex
	storeID string
	// read is when its changes were last read, by our clock.
	read time.Duration
	// tips are changes that came last when the list of changes was read, since that was read from before the time being; back
	// is when that was done, by our clock.
	tips []change
	back time.Duration
	// loads counts the stores that it became a copy of, or of none.
	loads   int
	objects map[string]edges
	// doubted are the objects of which the copy is perhaps untrue, by the number of the last doubt.
	doubted map[string]uint64
	// steady are the objects that held what they were to hold by the newest moment of which that was found out, settled.
	steady  map[string]struct{}
	settled moment
	// raised is how many doubts there were.
	raised uint64
	// waiting are keys that wait until an object is in step.
	waiting map[string]map[Key]bool
	// engaged are the objects that are being looked at, by what was declared when that began.
	engaged map[string]int
	// refused are tuples that OpenFGA does not take with a model.
	refused map[iam.Tuple]string
}

func newMirrored(openFGA Reader) *mirrored {
	m := &mirrored{openFGA: openFGA, waiting: map[string]map[Key]bool{}, engaged: map[string]int{}}
	m.forget()
	return m
}

// reset makes the copy one of another store.
func (m *mirrored) reset(storeID string, objects map[string]edges) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.storeID, m.objects, m.doubted, m.refused = storeID, objects, map[string]uint64{}, map[iam.Tuple]string{}
	m.steady, m.settled = map[string]struct{}{}, moment{}
	m.loads, m.read, m.tips, m.back = m.loads+1, 0, nil, bootclock.Now()
}

// forget makes the store be read anew.
func (m *mirrored) forget() { m.reset("", map[string]edges{}) }

// is reports whether this is a copy of a store.
func (m *mirrored) is(storeID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.storeID == storeID
}

// isFresh reports whether this is a copy of a store by what was read lately.
func (m *mirrored) isFresh(storeID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.storeID == storeID && bootclock.Since(m.read) < fresh
}

// loaded is how often the copy became one of a store that was not known.
func (m *mirrored) loaded() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loads
}

// follow makes the copy a fresh one of a store: it is read as a whole if it was not, and what others have written since.
// Objects whose tuples turn out to be others are doubted from then on.
func (m *mirrored) follow(ctx context.Context, storeID string) error {
	m.reading.Lock()
	defer m.reading.Unlock()
	return m.followed(ctx, storeID)
}

// followed does so for who reads alone.
func (m *mirrored) followed(ctx context.Context, storeID string) error {
	if !m.is(storeID) {
		if err := m.load(ctx, storeID); err != nil {
			return err
		}
	}
	return m.catchUp(ctx, storeID)
}

// refresh does so unless that was done lately.
func (m *mirrored) refresh(ctx context.Context, storeID string) error {
	if m.isFresh(storeID) { // Whoever reads holds up nobody as long as it is.
		return nil
	}
	m.reading.Lock()
	defer m.reading.Unlock()
	if m.isFresh(storeID) {
		return nil
	}
	return m.followed(ctx, storeID)
}

// doubts are the objects of which the copy is perhaps untrue.
func (m *mirrored) doubts() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.doubted))
}

// doubt makes an object be read before the next pass decides: whether a write arrived is not known.
func (m *mirrored) doubt(object string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.raise(object)
}

// raise doubts an object; the caller holds the lock.
func (m *mirrored) raise(object string) {
	m.raised++
	m.doubted[object] = m.raised
	delete(m.steady, object)
}

// sure says whether nobody doubts what the copy has of an object of a store; the caller holds the lock.
func (m *mirrored) sure(storeID, object string) bool {
	return m.storeID == storeID && m.doubted[object] == 0
}

// held are the tuples of an object by the copy, which is made true first if there is doubt. What is found that way
// and was not known is strange. A doubt stands until what was read is kept: meanwhile nobody takes the copy for true.
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
		if m.doubted[object] == doubt { // Else there was another, which this may not have seen.
			delete(m.doubted, object)
		}
	}
	return held[object], strange, nil
}

// keep is what an object has; the caller holds the lock.
func (m *mirrored) keep(object string, has edges) {
	delete(m.steady, object)
	if len(has) == 0 {
		delete(m.objects, object)
	} else {
		m.objects[object] = has
	}
}

// wrote notes a write of our own.
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

// refuse remembers what OpenFGA does not take with a model.
func (m *mirrored) refuse(t iam.Tuple, modelID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused[t] = modelID
}

// takes says whether OpenFGA is not known to refuse a tuple.
func (m *mirrored) takes(t iam.Tuple, modelID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused[t] != modelID
}

// engage notes that somebody looks at an object, and may write it: before they find out what is declared.
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

// mayHold says whether an object holds anything, as far as is known, or somebody may be writing it just now.
func (m *mirrored) mayHold(object string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects[object]) > 0 || m.doubted[object] > 0 || m.engaged[object] > 0
}

// known lists all objects that hold anything.
func (m *mirrored) known() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.objects))
}

// empty says whether nothing holds anything, as far as is known.
func (m *mirrored) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects)+len(m.doubted) == 0
}

// size is how many tuples an object holds by the copy.
func (m *mirrored) size(object string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects[object])
}

// holds says whether an object surely holds what is wanted, and nothing else. That is found out once until something changes:
// many ask of one object.
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

// settle notes that an object is in step by what is declared at a moment; the caller holds the lock. Of what was before nothing is kept:
// objects come and go, and nobody asks of them again.
func (m *mirrored) settle(object string, at moment) {
	if at.changes < m.settled.changes {
		return
	}
	if at != m.settled {
		m.steady, m.settled = map[string]struct{}{}, at
	}
	m.steady[object] = struct{}{}
}

// isSteady says whether that was found out of an object, and nothing has changed since.
func (m *mirrored) isSteady(n *snapshot, object string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.steady[object]
	return ok && m.settled == n.moment && m.storeID == n.of.storeID
}

// has tells what an object holds by the copy, and whether that is sure.
func (m *mirrored) has(storeID, object string) (is edges, sure bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.objects[object]), m.sure(storeID, object)
}
