package controller

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// priorityQueue is a workqueue that returns keys of higher priority first. Among equal priorities, the key that has
// waited longest is first.
type priorityQueue[K comparable] struct {
	keys  workqueue.TypedDelayingInterface[K]
	order *priorityOrder[K]
}

// newPriorityQueue returns a queue. usual returns the priority of keys that are added without a priority.
func newPriorityQueue[K comparable](usual func(K) int) priorityQueue[K] {
	o := &priorityOrder[K]{usual: usual, asked: map[K]int{}, waiting: map[int]int{}, at: map[K]int{}, levels: map[int][]K{}}
	return priorityQueue[K]{order: o, keys: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Queue: o}),
	})}
}

// addKey adds a key with at least the given priority.
func (q priorityQueue[K]) addKey(priority int, key K) {
	q.order.raisePriority(priority, key)
	q.keys.Add(key)
}

// hasWaitingAbove reports whether a key with a higher priority is waiting.
func (q priorityQueue[K]) hasWaitingAbove(priority int) bool {
	q.order.mu.Lock()
	defer q.order.mu.Unlock()
	for level, n := range q.order.waiting {
		if n > 0 && level > priority {
			return true
		}
	}
	return false
}

// priorityOrder implements [workqueue.Queue]. The workqueue serializes the calls of that interface; raisePriority is
// called concurrently.
type priorityOrder[K comparable] struct {
	usual func(K) int
	// at holds the priority of each waiting key. levels holds the waiting keys of each priority in the order of
	// arrival. A key whose priority was raised also remains in its old level, and Pop skips it there.
	at     map[K]int
	levels map[int][]K

	mu sync.Mutex
	// asked holds the highest priority that was requested for a key since the queue last returned it.
	asked map[K]int
	// waiting counts the waiting keys of each priority.
	waiting map[int]int
}

func (o *priorityOrder[K]) raisePriority(priority int, key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if has, ok := o.asked[key]; !ok || has < priority {
		o.asked[key] = priority
	}
}

// Len implements [workqueue.Queue].
func (o *priorityOrder[K]) Len() int { return len(o.at) }

// Touch implements [workqueue.Queue]. It raises the priority of a waiting key.
func (o *priorityOrder[K]) Touch(key K) { o.Push(key) }

// Push implements [workqueue.Queue].
func (o *priorityOrder[K]) Push(key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	priority, ok := o.asked[key]
	if !ok {
		priority = o.usual(key)
	}
	if at, waits := o.at[key]; !waits || at < priority {
		if o.waiting[priority]++; waits {
			o.waiting[at]--
		}
		o.at[key] = priority
		o.levels[priority] = append(o.levels[priority], key)
	}
}

// Pop implements [workqueue.Queue].
func (o *priorityOrder[K]) Pop() (key K) {
	for {
		level := slices.Max(slices.Collect(maps.Keys(o.levels)))
		key = o.levels[level][0]
		if o.levels[level] = o.levels[level][1:]; len(o.levels[level]) == 0 {
			delete(o.levels, level)
		}
		if at, waits := o.at[key]; waits && at == level {
			break
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting[o.at[key]]--
	delete(o.at, key)
	delete(o.asked, key)
	return key
}
