package mirror

import (
	"context"
	"slices"
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
)

// change is an entry of OpenFGA's list.
type change struct {
	tuple   iam.Tuple
	written bool
	at      time.Time
}

func newChange(c *openfgav1.TupleChange) change {
	t := c.GetTupleKey()
	return change{
		iam.Tuple{User: t.GetUser(), Relation: t.GetRelation(), Object: t.GetObject()},
		c.GetOperation() == openfgav1.TupleOperation_TUPLE_OPERATION_WRITE, c.GetTimestamp().AsTime(),
	}
}

// catchUp reads what has been written since, by whomever. Who decides waits for it if nobody has read for long, so that it
// goes on from where it was: what was committed late is found by [mirrored.lookBack].
func (m *mirrored) catchUp(ctx context.Context, storeID string) error {
	begun, since := bootclock.Now(), time.Time{}
	if m.token == "" && !m.last.IsZero() {
		since = m.last.Add(-late)
	}
	read := newReading(m.token, nil)
	err := m.readChanges(ctx, storeID, since, read)
	m.compare(read.is) // As far as it was read: that is not read again.
	m.token = read.token
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tips = append(m.tips, read.tips...)
	if err == nil {
		m.read = begun
	}
	return err
}

// lookBack reads again what was written lately: what was committed late is in the list before what was read already. A list
// that lacks a change which was read is another one, as of a database that was restored: what came back with it is in no list,
// so the whole store is read, and until that is done it is still owed. However much was written since, of the changes that came
// last when the list was read one is lacking then. Nobody waits for who looks back.
func (m *mirrored) lookBack(ctx context.Context, storeID string) error {
	begun, loads := bootclock.Now(), m.loaded()
	m.reading.Lock()
	since := m.last
	m.reading.Unlock()
	m.mu.Lock()
	tips := slices.Clone(m.tips)
	m.mu.Unlock()
	for i, c := range tips {
		if i == 0 || c.at.Before(since) {
			since = c.at
		}
	}
	if !since.IsZero() {
		since = since.Add(-late)
	}
	read := newReading("", tips)
	err := m.readChanges(ctx, storeID, since, read)
	m.compare(read.is)
	lost := len(read.missing) > 0
	if err == nil && lost {
		err = m.review(ctx, storeID)
	}
	if err != nil || !m.looked(loads, begun, len(tips), read.tips) || !lost {
		return err
	}
	return m.rewind(ctx, storeID, since)
}

// looked notes that so many changes which came last were looked for, and which is the last of those that there are; false if
// the copy has become one of another store.
func (m *mirrored) looked(loads int, begun time.Duration, tips int, newest []change) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.loads != loads {
		return false
	}
	m.back, m.tips = begun, m.tips[tips:]
	if n := len(newest); n > 0 {
		m.tips = append(m.tips, newest[n-1])
	}
	return true
}

// rewind has another list of changes be followed: who goes on from a place in the one before may miss what is written in it.
func (m *mirrored) rewind(ctx context.Context, storeID string, since time.Time) error {
	m.reading.Lock()
	defer m.reading.Unlock()
	m.token, m.last = "", since.Add(late)
	return m.followed(ctx, storeID)
}

// owes says whether it is time to look back.
func (m *mirrored) owes() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bootclock.Since(m.back) >= looksBack
}

// reading is what is read of the list of changes: which tuples are there by it, which changes that are looked for were not found,
// the last of each page, and where to go on.
type reading struct {
	is      map[iam.Tuple]bool
	missing map[change]bool
	tips    []change
	token   string
}

func newReading(token string, look []change) *reading {
	r := &reading{is: map[iam.Tuple]bool{}, missing: map[change]bool{}, token: token}
	for _, c := range look {
		r.missing[c] = true
	}
	return r
}

// readChanges reads the rest of the list, as far as it can be read.
func (m *mirrored) readChanges(ctx context.Context, storeID string, since time.Time, r *reading) error {
	for {
		page, next, err := m.openFGA.ReadChanges(ctx, storeID, r.token, since)
		if err != nil {
			return err
		}
		for _, entry := range page {
			c := newChange(entry)
			r.is[c.tuple] = c.written
			delete(r.missing, c)
		}
		if len(page) > 0 {
			r.tips = append(r.tips, newChange(page[len(page)-1]))
		}
		if r.token = next; len(page) == 0 || next == "" {
			return nil
		}
	}
}

// compare doubts objects of which the list of changes says otherwise than the copy.
func (m *mirrored) compare(is map[iam.Tuple]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for t, there := range is {
		if _, copied := m.objects[t.Object][edge{t.Relation, t.User}]; copied != there && iam.OwnsObject(t.Object) {
			m.raise(t.Object)
		}
	}
}
