package opensearchsync

import (
	"maps"
	"sync"
	"time"
)

// contests are the times in which changes of documents may still come to pass that nobody has seen an answer to: what is recorded of
// them stays so, and is looked at afterwards. Who forgot it would take for others' what OpenSearch has then.
type contests struct {
	now func() time.Time
	// settling bounds how long a call may still take effect.
	settling time.Duration

	mu    sync.Mutex
	until map[Key]time.Time
	// turn is the last that was seen, begun is when: the replica before may have sent something, too.
	turn  uint64
	begun time.Time
}

func newContests(now func() time.Time, settling time.Duration) *contests {
	return &contests{now: now, settling: settling, until: map[Key]time.Time{}}
}

// open is told that a change of a document has been sent, as far as anybody knows.
func (c *contests) open(k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	maps.DeleteFunc(c.until, func(_ Key, until time.Time) bool { return !until.After(now) })
	c.until[k] = now.Add(c.settling)
}

// left is for how long such a change may still come to pass: what is listed later has it. Zero if there is none.
func (c *contests) left(k Key) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, c.until[k].Sub(c.now()))
}

// young reports whether changes of the replica before may still come to pass in a turn.
func (c *contests) young(turn uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun.IsZero() || c.turn != turn {
		c.turn, c.begun = turn, c.now()
	}
	return c.now().Sub(c.begun) < c.settling
}
