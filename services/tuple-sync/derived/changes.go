package derived

import (
	"context"
	"slices"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/iam"
)

const (
	// late bounds how much later a change may be committed than changes that follow it in OpenFGA's list.
	late = time.Minute
	// looksBack bounds the time between two calls of [tupleReplica.rereadRecentChanges].
	looksBack = 10 * time.Second
)

// tupleChange is an entry of OpenFGA's list.
type tupleChange struct {
	tuple   iam.Tuple
	written bool
	at      time.Time
}

func toTupleChange(c *openfgav1.TupleChange) tupleChange {
	t := c.GetTupleKey()
	return tupleChange{
		iam.Tuple{User: t.GetUser(), Relation: t.GetRelation(), Object: t.GetObject()},
		c.GetOperation() == openfgav1.TupleOperation_TUPLE_OPERATION_WRITE, c.GetTimestamp().AsTime(),
	}
}

// readNewChanges reads the changes since the last call, from the saved continuation token. Decisions wait for it when the copy
// is not fresh, so it reads nothing twice. [tupleReplica.rereadRecentChanges] finds changes that were committed late.
func (m *tupleReplica) readNewChanges(ctx context.Context, storeID string) error {
	begun, since := bootclock.Now(), time.Time{}
	if m.token == "" && !m.last.IsZero() {
		since = m.last.Add(-late)
	}
	read := newChangeListReader(m.token, nil)
	err := m.readRemainingChanges(ctx, storeID, since, read)
	m.markContradictedObjects(read.is) // As far as it was read: that is not read again.
	m.token = read.token
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tips = append(m.tips, read.tips...)
	if err == nil {
		m.read = begun
	}
	return err
}

// rereadRecentChanges reads recent changes again, because a change that is committed late appears in the list before changes
// already read.
//
// If the list lacks a change that was read before, its history differs: the database was probably restored. Restored
// tuples appear in no list, so rereadRecentChanges reads the whole store. On an error it stays due. The last change of
// every read is kept in tips, so a lost history is found however much was written since. No decision waits for
// rereadRecentChanges.
func (m *tupleReplica) rereadRecentChanges(ctx context.Context, storeID string) error {
	begun, loads := bootclock.Now(), m.loadCount()
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
	read := newChangeListReader("", tips)
	err := m.readRemainingChanges(ctx, storeID, since, read)
	m.markContradictedObjects(read.is)
	lost := len(read.missing) > 0
	if err == nil && lost {
		err = m.markDifferingObjects(ctx, storeID)
	}
	if err != nil || !m.finishReread(loads, begun, len(tips), read.tips) || !lost {
		return err
	}
	return m.rereadFromTime(ctx, storeID, since)
}

// finishReread replaces the first tips, which rereadRecentChanges has searched for, by the newest change that it read.
// It returns false if the copy was reset meanwhile.
func (m *tupleReplica) finishReread(loads int, begun time.Duration, tips int, newest []tupleChange) bool {
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

// rereadFromTime follows the list of changes from since, without a continuation token. A token of the previous history may skip
// changes of the new one.
func (m *tupleReplica) rereadFromTime(ctx context.Context, storeID string, since time.Time) error {
	m.reading.Lock()
	defer m.reading.Unlock()
	m.token, m.last = "", since.Add(late)
	return m.catchUpLocked(ctx, storeID)
}

// isRereadDue reports whether rereadRecentChanges is due.
func (m *tupleReplica) isRereadDue() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bootclock.Since(m.back) >= looksBack
}

// changeListReader collects a part of the list of changes. It holds whether each tuple exists, the expected changes not found
// yet, the last change of each page, and the continuation token.
type changeListReader struct {
	is      map[iam.Tuple]bool
	missing map[tupleChange]bool
	tips    []tupleChange
	token   string
}

func newChangeListReader(token string, look []tupleChange) *changeListReader {
	r := &changeListReader{is: map[iam.Tuple]bool{}, missing: map[tupleChange]bool{}, token: token}
	for _, c := range look {
		r.missing[c] = true
	}
	return r
}

// readRemainingChanges reads the rest of the list. On an error, r holds everything read before it.
func (m *tupleReplica) readRemainingChanges(ctx context.Context, storeID string, since time.Time, r *changeListReader) error {
	for {
		page, next, err := m.openFGA.ReadChanges(ctx, storeID, r.token, since)
		if err != nil {
			return err
		}
		for _, entry := range page {
			c := toTupleChange(entry)
			r.is[c.tuple] = c.written
			delete(r.missing, c)
		}
		if len(page) > 0 {
			r.tips = append(r.tips, toTupleChange(page[len(page)-1]))
		}
		if r.token = next; len(page) == 0 || next == "" {
			return nil
		}
	}
}

// markContradictedObjects marks objects as doubted if the list of changes contradicts the copy.
func (m *tupleReplica) markContradictedObjects(is map[iam.Tuple]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for t, there := range is {
		if _, copied := m.objects[t.Object][relationUser{t.Relation, t.User}]; copied != there && iam.IsIAMObject(t.Object) {
			m.markSuspectLocked(t.Object)
		}
	}
}
