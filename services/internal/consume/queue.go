package consume

import (
	"container/heap"
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
	o := &order[K]{usual: usual, asked: map[K]int{}, waiting: waiting[K]{place: map[K]int{}}}
	return queue[K]{order: o, keys: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Queue: o}),
	})}
}

// add adds a key that is to have at least the given priority when its turn comes.
func (q queue[K]) add(priority int, key K) {
	q.order.ask(priority, key)
	q.keys.Add(key)
}

// order implements [workqueue.Queue]. The workqueue calls it from one place at a time; what was
// asked for comes from elsewhere.
type order[K comparable] struct {
	usual   func(K) int
	waiting waiting[K]
	// count numbers keys in the order in which they came.
	count uint64

	mu sync.Mutex
	// asked is the highest priority that was asked for since a key had its last turn.
	asked map[K]int
}

func (o *order[K]) ask(priority int, key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if has, ok := o.asked[key]; !ok || has < priority {
		o.asked[key] = priority
	}
}

func (o *order[K]) priority(key K) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if priority, ok := o.asked[key]; ok {
		return priority
	}
	return o.usual(key)
}

// Len implements [workqueue.Queue].
func (o *order[K]) Len() int { return o.waiting.Len() }

// Touch implements [workqueue.Queue]: a key that waits may be asked for more urgently.
func (o *order[K]) Touch(key K) {
	at := o.waiting.place[key]
	if priority := o.priority(key); priority > o.waiting.items[at].priority {
		o.waiting.items[at].priority = priority
		heap.Fix(&o.waiting, at)
	}
}

// Push implements [workqueue.Queue].
func (o *order[K]) Push(key K) {
	o.count++
	heap.Push(&o.waiting, item[K]{key, o.priority(key), o.count})
}

// Pop implements [workqueue.Queue].
func (o *order[K]) Pop() K {
	next, _ := heap.Pop(&o.waiting).(item[K])
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.asked, next.key)
	return next.key
}

// item is a key that waits for its turn.
type item[K comparable] struct {
	key      K
	priority int
	number   uint64
}

// waiting implements [heap.Interface].
type waiting[K comparable] struct {
	items []item[K]
	// place is where in items a key is.
	place map[K]int
}

func (w *waiting[K]) Len() int { return len(w.items) }

func (w *waiting[K]) Less(i, j int) bool {
	a, b := w.items[i], w.items[j]
	return a.priority > b.priority || a.priority == b.priority && a.number < b.number
}

func (w *waiting[K]) Swap(i, j int) {
	w.items[i], w.items[j] = w.items[j], w.items[i]
	w.place[w.items[i].key], w.place[w.items[j].key] = i, j
}

func (w *waiting[K]) Push(x any) {
	if it, ok := x.(item[K]); ok {
		w.place[it.key] = len(w.items)
		w.items = append(w.items, it)
	}
}

func (w *waiting[K]) Pop() any {
	last := w.items[len(w.items)-1]
	w.items = w.items[:len(w.items)-1]
	delete(w.place, last.key)
	return last
}
