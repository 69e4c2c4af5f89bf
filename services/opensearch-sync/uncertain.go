package opensearchsync

import (
	"maps"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// uncertainWrites holds, for each document, until when an unanswered change may still take effect. Until then records keep
// their entries, because a forgotten entry would later count as foreign.
type uncertainWrites struct {
	now func() time.Time
	// settling bounds how long a call may still take effect.
	settling time.Duration

	mu    sync.Mutex
	until map[Key]time.Time
	// seen holds, by UID of a binding, the recorded entries that the server has listed since an unanswered change.
	seen map[string]seenEntries
	// term is the newest term, and begun is when a cluster was first listed in it. The previous leader may have sent changes
	// shortly before.
	term  uint64
	begun time.Time
	// recorded holds when this replica wrote the first record of an object. No earlier change exists for the object.
	recorded perObjectCache[time.Time]
}

// seenEntries holds entries by role, until a time after which no change is uncertain.
type seenEntries struct {
	until  time.Time
	byRole map[string]plan.MappingEntries
}

// newUncertainWrites returns an empty set. lives reports whether an object exists.
func newUncertainWrites(now func() time.Time, settling time.Duration, lives func(k event.Key, uid string) bool) *uncertainWrites {
	return &uncertainWrites{
		now: now, settling: settling, until: map[Key]time.Time{}, seen: map[string]seenEntries{}, recorded: newPerObjectCache[time.Time](lives),
	}
}

// addUnanswered records that a change of a document may have been sent and got no answer.
func (c *uncertainWrites) addUnanswered(k Key) { c.addUncertain(k, c.settling) }

// addUncertain records that a change of a document may take effect within a time.
func (c *uncertainWrites) addUncertain(k Key, within time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	maps.DeleteFunc(c.until, func(_ Key, until time.Time) bool { return !until.After(now) })
	if until := now.Add(within); until.After(c.until[k]) {
		c.until[k] = until
	}
}

// remainingUncertainty returns how long an unanswered change of a document may still take effect, or zero. A listing after that time
// shows its result.
func (c *uncertainWrites) remainingUncertainty(k Key) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, c.until[k].Sub(c.now()))
}

// addSeen records the entries of bindings that the server listed, while a change is uncertain for a time.
func (c *uncertainWrites) addSeen(outcomes map[string]plan.BindingOutcome, left time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	maps.DeleteFunc(c.seen, func(_ string, is seenEntries) bool { return !is.until.After(now) })
	for uid, o := range outcomes {
		if left <= 0 { // The run may write the entries again.
			delete(c.seen, uid)
			continue
		}
		c.seen[uid] = seenEntries{now.Add(left), o.Seen}
	}
}

// seenOf returns the entries of a binding that the server has listed since an unanswered change.
func (c *uncertainWrites) seenOf(uid string) map[string]plan.MappingEntries {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[uid].byRole
}

// observeTerm records when a term began. It returns since when this leader remembers all changes, and how long earlier ones may
// still take effect. The previous leader may have sent them, or this one before an outage of the cluster.
func (c *uncertainWrites) observeTerm(term uint64, answers time.Time) (since time.Time, left time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun.IsZero() || c.term != term {
		c.term, c.begun = term, c.now()
	}
	if since = c.begun; answers.After(since) {
		since = answers
	}
	return since, max(0, c.settling-c.now().Sub(since))
}

// addFirstRecord records that the first record of an object was written now.
func (c *uncertainWrites) addFirstRecord(o event.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recorded.putValue(o.Key, o.UID, c.now())
}

// isRecordedSince reports whether the first record of an object was written since a time.
func (c *uncertainWrites) isRecordedSince(uid string, since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.recorded.getValue(uid)
	return ok && !at.Before(since)
}
