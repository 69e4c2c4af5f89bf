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
	c := newUncertainWrites(func() time.Time { return now }, settling)
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
}

func TestObserveTermMarksAllWritesUncertain(t *testing.T) {
	now := time.Unix(1, 0)
	c := newUncertainWrites(func() time.Time { return now }, settling)
	for _, term := range []uint64{0, 1, 3} {
		if !c.observeTerm(term) {
			t.Errorf("term %d is old when it begins", term)
		}
		if now = now.Add(settling - 1); !c.observeTerm(term) {
			t.Errorf("term %d is old too early", term)
		}
		for range 2 {
			if now = now.Add(settling); c.observeTerm(term) {
				t.Errorf("term %d is young for ever", term)
			}
		}
	}
}

func TestUncertainWritesRememberSeenEntriesOfContest(t *testing.T) {
	now := time.Now()
	c := newUncertainWrites(func() time.Time { return now }, settling)
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
