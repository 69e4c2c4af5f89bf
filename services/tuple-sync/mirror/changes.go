package mirror

import (
	"context"
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

// catchUp reads what has been written since, by whomever. Now and then it looks back: what was committed late is in
// the list before what was read already. A list that lacks the last change that was read is another one, as of a database
// that was restored: what came back with it is in no list, so the whole store is read, and until then that is still owed.
func (m *mirrored) catchUp(ctx context.Context, storeID string) error {
	begun, token, since := bootclock.Now(), m.token, time.Time{}
	back := token == "" || bootclock.Since(m.back) >= looksBack
	if back {
		if token = ""; !m.last.IsZero() {
			since = m.last.Add(-late)
		}
	}
	read, err := m.readChanges(ctx, storeID, token, since)
	m.compare(read.is) // As far as it was read: that is not read again.
	lost := back && m.tip != (change{}) && !read.seen
	if err == nil && lost {
		if err = m.review(ctx, storeID); err == nil {
			lost, m.tip = false, change{}
		}
	}
	if !lost && read.newest != (change{}) {
		m.last, m.tip = read.newest.at, read.newest
	}
	if err != nil {
		return err
	}
	if back {
		m.back = begun
	}
	m.token = read.token
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read = begun
	return nil
}

// reading is what was read of the list of changes: which tuples are there by it, whether the last change was seen again that
// was read before, the newest that is as new as that, and where to go on.
type reading struct {
	is     map[iam.Tuple]bool
	seen   bool
	newest change
	token  string
}

// readChanges reads the rest of the list, as far as it can be read.
func (m *mirrored) readChanges(ctx context.Context, storeID, from string, since time.Time) (reading, error) {
	r, last := reading{is: map[iam.Tuple]bool{}, token: from}, m.last
	for {
		page, next, err := m.openFGA.ReadChanges(ctx, storeID, r.token, since)
		if err != nil {
			return r, err
		}
		for _, entry := range page {
			c := newChange(entry)
			r.seen = r.seen || c == m.tip
			r.is[c.tuple] = c.written
			if !c.at.Before(last) {
				last, r.newest = c.at, c
			}
		}
		if r.token = next; len(page) == 0 || next == "" {
			return r, nil
		}
	}
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
