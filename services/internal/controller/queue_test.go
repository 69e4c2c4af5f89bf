package controller

import (
	"slices"
	"testing"

	"go.uber.org/goleak"
)

func TestPriorityQueueReturnsHigherPriorityFirstThenFIFO(t *testing.T) {
	type add struct {
		priority int
		key      string
	}
	for name, c := range map[string]struct {
		adds []add
		want []string
	}{
		"in their order":                  {[]add{{0, "a"}, {0, "b"}, {0, "c"}}, []string{"a", "b", "c"}},
		"by priority":                     {[]add{{-1, "a"}, {0, "b"}, {1, "c"}, {0, "d"}}, []string{"c", "b", "d", "a"}},
		"asked for again, more urgently":  {[]add{{0, "a"}, {0, "b"}, {1, "b"}}, []string{"b", "a"}},
		"asked for again, less urgently":  {[]add{{1, "b"}, {0, "a"}, {-1, "b"}}, []string{"b", "a"}},
		"asked for again, no differently": {[]add{{0, "a"}, {0, "b"}, {0, "a"}}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			q := newPriorityQueue(func(string) int { return 0 })
			defer q.keys.ShutDown()
			for _, a := range c.adds {
				q.addKey(a.priority, a.key)
			}
			if got := take(q, len(c.want)); !slices.Equal(got, c.want) || q.keys.Len() != 0 {
				t.Errorf("got %v and %d more, want %v", got, q.keys.Len(), c.want)
			}
		})
	}
}

func TestPriorityQueueRequeuesKeyAddedDuringProcessing(t *testing.T) {
	q := newPriorityQueue(func(string) int { return 0 })
	defer q.keys.ShutDown()
	q.addKey(1, "a")
	q.addKey(0, "b")
	take(q, 0)
	key, _ := q.keys.Get()
	q.addKey(-1, key)
	q.keys.Done(key)
	if got := take(q, 2); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("got %v: an earlier turn's priority counts no more", got)
	}
	q.keys.Add("c")
	if got := take(q, 1); !slices.Equal(got, []string{"c"}) {
		t.Errorf("got %v", got)
	}
}

func TestPriorityQueueReportsWaitingAbovePriority(t *testing.T) {
	q := newPriorityQueue(func(string) int { return 0 })
	defer q.keys.ShutDown()
	want := func(what string, outranked ...int) {
		t.Helper()
		for priority := -1; priority <= 1; priority++ {
			if got := q.hasWaitingAbove(priority); got != slices.Contains(outranked, priority) {
				t.Errorf("%s: priority %d is outranked: %v", what, priority, got)
			}
		}
	}
	want("nobody waits")
	q.addKey(0, "a")
	want("one waits", -1)
	q.addKey(1, "a")
	want("it is asked for more urgently", -1, 0)
	q.addKey(0, "b")
	take(q, 1)
	want("the other waits", -1)
	take(q, 1)
	want("all had their turn")
}

func take(q priorityQueue[string], n int) []string {
	var keys []string
	for range n {
		key, _ := q.keys.Get()
		q.keys.Done(key)
		keys = append(keys, key)
	}
	return keys
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
