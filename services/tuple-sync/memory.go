package tuplesync

import (
	"maps"
	"slices"
	"sync"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/tuple-sync/plan"
)

// memory holds the records that this process knows to be true: those it has found when it
// first looked at a store, written, or compared with OpenFGA.
//
// A record that appears later was written by somebody else, a predecessor as a rule, and
// what it speaks of may have been undone by this process before it knew: so the store
// is read before such a record is trusted. And a record that is in it outlives its object.
type memory struct {
	mu sync.Mutex
	// ledgers by OpenFGA store and UID of the object.
	ledgers map[string]map[string]ledger
	// visited are the stores that this process has looked at.
	visited map[string]struct{}
	// done are the objects deleted past us whose tuples have been removed, by UID.
	done map[string]struct{}
}

// ledger is a record with the state of the object that bears it.
type ledger struct {
	change event.Change
	tuples []plan.Tuple
}

func newMemory() *memory {
	return &memory{ledgers: map[string]map[string]ledger{}, visited: map[string]struct{}{}, done: map[string]struct{}{}}
}

// visit reports whether this is the first look at a store.
func (m *memory) visit(storeID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, again := m.visited[storeID]
	m.visited[storeID] = struct{}{}
	return !again
}

// knows reports whether the record of o is known to be true.
func (m *memory) knows(o object) bool {
	if len(o.Record.Tuples) == 0 {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.ledgers[o.Record.StoreID][o.UID]
	return ok && !o.Gone && slices.Equal(l.tuples, o.Record.Tuples)
}

// learn keeps the record of o in one store as true.
func (m *memory) learn(storeID string, o object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.Record.StoreID != storeID {
		m.drop(storeID, o.UID)
		return
	}
	m.set(storeID, ledger{o.change, o.Record.Tuples})
}

// exhume takes in the record of an object that was deleted past us, once.
func (m *memory) exhume(r plan.Record, gone event.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.done[gone.UID]; !ok {
		m.set(r.StoreID, ledger{gone, r.Tuples})
	}
}

// bury ends the matter of an object that was deleted past us.
func (m *memory) bury(storeID string, o object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(storeID, o.UID)
	m.done[o.UID] = struct{}{}
}

func (m *memory) forget(storeID, uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(storeID, uid)
}

// of is everything remembered of one store, by UID.
func (m *memory) of(storeID string) map[string]ledger {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.ledgers[storeID])
}

func (m *memory) set(storeID string, l ledger) {
	if m.ledgers[storeID] == nil {
		m.ledgers[storeID] = map[string]ledger{}
	}
	m.ledgers[storeID][l.change.UID] = l
}

func (m *memory) drop(storeID, uid string) {
	delete(m.ledgers[storeID], uid)
	if len(m.ledgers[storeID]) == 0 {
		delete(m.ledgers, storeID)
	}
}
