package mirror

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/iam"
)

const (
	// late is by how much a change may be committed later than changes that come after it in OpenFGA's list.
	late = time.Minute
	// looksBack is how often changes are read from so long ago.
	looksBack = 10 * time.Second
	// fresh is how old the copy may be, as to what others write. Who takes over from another replica reads first.
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
	// last is when the store changed last, by its own clock; back is when changes were last read from before that, read
	// when at all, by ours.
	last       time.Time
	back, read time.Duration

	mu      sync.Mutex
	storeID string
	objects map[string]edges
	// doubted are the objects of which the copy is perhaps untrue.
	doubted map[string]bool
	// waiting are keys that wait until an object is in step.
	waiting map[string][]Key
	// refused are tuples that OpenFGA does not take with a model.
	refused map[iam.Tuple]string
}

func newMirrored(openFGA Reader) *mirrored {
	m := &mirrored{openFGA: openFGA, waiting: map[string][]Key{}, refused: map[iam.Tuple]string{}}
	m.reset("", nil)
	return m
}

// reset makes the copy one of another store.
func (m *mirrored) reset(storeID string, objects map[string]edges) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.storeID, m.objects, m.doubted = storeID, objects, map[string]bool{}
}

// forget makes the store be read anew.
func (m *mirrored) forget() { m.reset("", nil) }

// is reports whether this is a copy of a store.
func (m *mirrored) is(storeID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.storeID == storeID
}

// follow makes the copy a fresh one of a store: it is read as a whole if it was not, or again if that is asked for, and
// what others have written since. Objects whose tuples turn out to be others are doubted from then on.
func (m *mirrored) follow(ctx context.Context, storeID string, again bool) error {
	m.reading.Lock()
	defer m.reading.Unlock()
	if !m.is(storeID) || again {
		if err := m.load(ctx, storeID); err != nil {
			return err
		}
	}
	return m.catchUp(ctx, storeID)
}

// refresh does so unless that was done lately.
func (m *mirrored) refresh(ctx context.Context, storeID string) error {
	m.reading.Lock()
	done := m.is(storeID) && bootclock.Since(m.read) < fresh
	m.reading.Unlock()
	if done {
		return nil
	}
	return m.follow(ctx, storeID, false)
}

// load reads the whole store.
func (m *mirrored) load(ctx context.Context, storeID string) error {
	held, last := map[string]edges{}, time.Time{}
	for t, err := range m.openFGA.ReadTuples(ctx, storeID) {
		if err != nil {
			return err
		}
		if at := t.GetTimestamp().AsTime(); at.After(last) {
			last = at
		}
		put(held, t.GetKey())
	}
	m.token, m.last, m.back = "", last, 0
	if !m.is(storeID) {
		m.reset(storeID, held)
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, object := range slices.Concat(slices.Collect(maps.Keys(held)), slices.Collect(maps.Keys(m.objects))) {
		if !maps.Equal(held[object], m.objects[object]) {
			m.doubted[object] = true
		}
	}
	return nil
}

func put(objects map[string]edges, t *openfgav1.TupleKey) {
	if !iam.OwnsObject(t.GetObject()) {
		return
	}
	if objects[t.GetObject()] == nil {
		objects[t.GetObject()] = edges{}
	}
	objects[t.GetObject()][edge{t.GetRelation(), t.GetUser()}] = struct{}{}
}

// catchUp reads what has been written since, by whomever. Now and then it looks back: what was committed late is in
// the list before what was read already.
func (m *mirrored) catchUp(ctx context.Context, storeID string) error {
	begun, token, since := bootclock.Now(), m.token, time.Time{}
	if token == "" || bootclock.Since(m.back) >= looksBack {
		if m.back, token = begun, ""; !m.last.IsZero() {
			since = m.last.Add(-late)
		}
	}
	is := map[iam.Tuple]bool{}
	for {
		page, next, err := m.openFGA.ReadChanges(ctx, storeID, token, since)
		if err != nil {
			return err
		}
		for _, c := range page {
			t := iam.Tuple{User: c.GetTupleKey().GetUser(), Relation: c.GetTupleKey().GetRelation(), Object: c.GetTupleKey().GetObject()}
			is[t] = c.GetOperation() == openfgav1.TupleOperation_TUPLE_OPERATION_WRITE
			if at := c.GetTimestamp().AsTime(); at.After(m.last) {
				m.last = at
			}
		}
		if token = next; len(page) == 0 || token == "" {
			break
		}
	}
	m.token, m.read = token, begun
	m.compare(is)
	return nil
}

// compare doubts objects of which the list of changes says otherwise than the copy.
func (m *mirrored) compare(is map[iam.Tuple]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for t, there := range is {
		if _, copied := m.objects[t.Object][edge{t.Relation, t.User}]; copied != there && iam.OwnsObject(t.Object) {
			m.doubted[t.Object] = true
		}
	}
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
	m.doubted[object] = true
}

// held are the tuples of an object by the copy, which is made true first if there is doubt. What is found that way
// and was not known is strange.
func (m *mirrored) held(ctx context.Context, storeID, object string) (has edges, strange []iam.Tuple, err error) {
	m.mu.Lock()
	doubted, known := m.doubted[object], maps.Clone(m.objects[object])
	delete(m.doubted, object)
	m.mu.Unlock()
	if !doubted {
		return known, nil, nil
	}
	read, err := m.openFGA.ReadObject(ctx, storeID, object)
	if err != nil {
		m.doubt(object)
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
	m.keep(object, maps.Clone(held[object]))
	return held[object], strange, nil
}

// keep is what an object has; the caller holds the lock.
func (m *mirrored) keep(object string, has edges) {
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

// await has a key asked for once somebody has made the object be in step. Look only then whether it is.
func (m *mirrored) await(object string, key Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.waiting[object], key) {
		m.waiting[object] = append(m.waiting[object], key)
	}
}

// leave ends that.
func (m *mirrored) leave(object string, key Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting[object] = slices.DeleteFunc(m.waiting[object], func(k Key) bool { return k == key }); len(m.waiting[object]) == 0 {
		delete(m.waiting, object)
	}
}

// release lists the keys that wait for an object.
func (m *mirrored) release(object string) []Key {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := m.waiting[object]
	delete(m.waiting, object)
	return keys
}

// known lists all objects that hold anything.
func (m *mirrored) known() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.objects))
}

// has tells what an object holds by the copy, and whether that is sure.
func (m *mirrored) has(storeID, object string) (is edges, sure bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.objects[object]), m.storeID == storeID && !m.doubted[object]
}
