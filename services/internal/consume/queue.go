package consume

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// queue is a workqueue in which keys of higher priority go first, and of equal ones those that
// wait longest.
type queue[K comparable] struct {
	keys  workqueue.TypedDelayingInterface[K]
	order *order[K]
}

// newQueue makes a queue; usual is the priority of keys that come without one.
func newQueue[K comparable](usual func(K) int) queue[K] {
	o := &order[K]{usual: usual, asked: map[K]int{}, waiting: map[int]int{}, at: map[K]int{}, levels: map[int][]K{}}
	return queue[K]{order: o, keys: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Queue: o}),
	})}
}

// add adds a key that is to have at least the given priority when its turn comes.
func (q queue[K]) add(priority int, key K) {
	q.order.ask(priority, key)
	q.keys.Add(key)
}

// outranks reports whether keys of a higher priority wait for their turn.
func (q queue[K]) outranks(priority int) bool {
	q.order.mu.Lock()
	defer q.order.mu.Unlock()
	for level, n := range q.order.waiting {
		if n > 0 && level > priority {
			return true
		}
	}
	return false
}

// order implements [workqueue.Queue]. The workqueue calls it from one place at a time; what is
// asked for comes from elsewhere.
type order[K comparable] struct {
	usual func(K) int
	// at is the priority with which a key waits, levels those that came with each, some of which
	// wait with a higher one by now.
	at     map[K]int
	levels map[int][]K

	mu sync.Mutex
	// asked is the highest priority that was asked for since a key had its last turn.
	asked map[K]int
	// waiting counts the keys of each priority.
	waiting map[int]int
}

func (o *order[K]) ask(priority int, key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if has, ok := o.asked[key]; !ok || has < priority {
		o.asked[key] = priority
	}
}

// Len implements [workqueue.Queue].
func (o *order[K]) Len() int { return len(o.at) }

// Touch implements [workqueue.Queue]: a key that waits may be asked for more urgently.
func (o *order[K]) Touch(key K) { o.Push(key) }

// Push implements [workqueue.Queue].
func (o *order[K]) Push(key K) {
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
func (o *order[K]) Pop() (key K) {
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
