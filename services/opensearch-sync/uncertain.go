package opensearchsync

import (
	"maps"
	"sync"
	"time"

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
	// term is the newest term, and begun is when it was first seen. The previous leader may have sent changes shortly
	// before.
	term  uint64
	begun time.Time
}

// seenEntries holds entries by role, until a time after which no change is uncertain.
type seenEntries struct {
	until  time.Time
	byRole map[string]plan.MappingEntries
}

func newUncertainWrites(now func() time.Time, settling time.Duration) *uncertainWrites {
	return &uncertainWrites{now: now, settling: settling, until: map[Key]time.Time{}, seen: map[string]seenEntries{}}
}

// addUnanswered records that a change of a document may have been sent and got no answer.
func (c *uncertainWrites) addUnanswered(k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	maps.DeleteFunc(c.until, func(_ Key, until time.Time) bool { return !until.After(now) })
	c.until[k] = now.Add(c.settling)
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

// observeTerm records when a term began. It reports whether changes of the previous leader may still take effect in it.
func (c *uncertainWrites) observeTerm(term uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun.IsZero() || c.term != term {
		c.term, c.begun = term, c.now()
	}
	return c.now().Sub(c.begun) < c.settling
}
