package opensearchsync

import (
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// settling bounds how long calls may take effect in these tests.
const settling = 10 * time.Second

func TestUncertainWritesExpire(t *testing.T) {
	now := time.Unix(1, 0)
	c := newUncertainWrites(func() time.Time { return now }, settling, func(event.Key, string) bool { return true })
	key := func(name string) Key { return Key{event.Key{Name: name}, plan.Users} }
	if c.addUnanswered(key("a")); c.remainingUncertainty(key("a")) != settling || c.remainingUncertainty(key("b")) != 0 {
		t.Errorf("left are %s, of another %s", c.remainingUncertainty(key("a")), c.remainingUncertainty(key("b")))
	}
	if now = now.Add(settling - 1); c.remainingUncertainty(key("a")) != 1 {
		t.Errorf("left are %s", c.remainingUncertainty(key("a")))
	}
	if now = now.Add(1); c.remainingUncertainty(key("a")) != 0 {
		t.Errorf("left are %s", c.remainingUncertainty(key("a")))
	}
	if c.addUnanswered(key("b")); len(c.until) != 1 {
		t.Errorf("%d are remembered", len(c.until))
	}
	if c.addUncertain(key("b"), 1); c.remainingUncertainty(key("b")) != settling {
		t.Errorf("got %s after a shorter uncertainty, want %s", c.remainingUncertainty(key("b")), settling)
	}
}

func TestObserveTermReturnsHowLongEarlierChangesMayTakeEffect(t *testing.T) {
	now := time.Unix(1, 0)
	c := newUncertainWrites(func() time.Time { return now }, settling, func(event.Key, string) bool { return true })
	young := func(term uint64, answers time.Time) time.Duration {
		_, left := c.observeTerm(term, answers)
		return left
	}
	for _, term := range []uint64{0, 1, 3} {
		if got := young(term, time.Time{}); got != settling {
			t.Errorf("term %d: got %s at its begin, want %s", term, got, settling)
		}
		if now = now.Add(settling - 1); young(term, time.Time{}) != 1 {
			t.Errorf("term %d: got %s, want 1", term, young(term, time.Time{}))
		}
		for range 2 {
			if now = now.Add(settling); young(term, time.Time{}) != 0 {
				t.Errorf("term %d: got %s long after its begin, want 0", term, young(term, time.Time{}))
			}
		}
	}
	if got := young(3, now.Add(-1)); got != settling-1 { // The cluster did not answer before.
		t.Errorf("got %s after an outage, want %s", got, settling-1)
	}
}

// No earlier change exists for an object that this replica has recorded first, unless an outage or another leader came between.
func TestUncertainWritesRememberFirstRecords(t *testing.T) {
	now := time.Unix(1, 0)
	c := newUncertainWrites(func() time.Time { return now }, settling, func(event.Key, string) bool { return true })
	since, _ := c.observeTerm(1, time.Time{})
	c.addFirstRecord(event.Change{UID: "new"})
	if !c.isRecordedSince("new", since) || c.isRecordedSince("old", since) {
		t.Error("got another answer for a new or an old object")
	}
	now = now.Add(1)
	if since, _ = c.observeTerm(1, now); c.isRecordedSince("new", since) {
		t.Error("got a new object after an outage")
	}
}

func TestUncertainWritesRememberSeenEntriesOfContest(t *testing.T) {
	now := time.Now()
	c := newUncertainWrites(func() time.Time { return now }, settling, func(event.Key, string) bool { return true })
	entries := func(user string) map[string]plan.MappingEntries {
		return map[string]plan.MappingEntries{"logs": {Users: []string{user}}}
	}
	see := func(user string, left time.Duration) {
		c.addSeen(map[string]plan.BindingOutcome{"one": {Seen: entries(user)}}, left)
	}
	see("anna", settling)
	if got := c.seenOf("one")["logs"].Users; len(got) != 1 {
		t.Errorf("got %q, want anna", got)
	}
	if see("kim", 0); len(c.seenOf("one")) > 0 {
		t.Errorf("got %v after the contest, want none", c.seenOf("one"))
	}
	see("anna", settling)
	now = now.Add(settling)
	if c.addSeen(nil, 0); len(c.seen) > 0 {
		t.Errorf("got %v, want no expired entries", c.seen)
	}
}
