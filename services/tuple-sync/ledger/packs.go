package ledger

import (
	"sync"
	"unsafe"

	"k8s.io/utils/lru"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// packs remembers what packed lists hold, in order, and what long lists of the view say: everybody who looks at an
// object with a long record asks, and to unpack it takes longer than all else that is done about it.
type packs struct {
	mu    sync.Mutex
	lists *lru.Cache
	// bytes is what they take, about.
	bytes int
}

// maxPacks bounds how many are remembered, and maxPackBytes what they take. They share their tuples with [records].
const (
	maxPacks     = 64
	maxPackBytes = 64 << 20
)

func newPacks() *packs {
	p := &packs{}
	p.lists = lru.NewWithEvictionFunc(maxPacks, func(list lru.Key, held any) {
		tuples, _ := held.([]tuple.Tuple)
		p.bytes -= size(list, tuples)
	})
	return p
}

// parse reads a list that the view holds, which nobody changes.
func (p *packs) parse(declared []corev1alpha1.Tuple) []tuple.Tuple {
	if len(declared) <= corev1alpha1.LongRecord {
		return tuple.ParseAll(declared)
	}
	if tuples, ok := p.known(&declared[0]); ok {
		return tuples
	}
	tuples := tuple.ParseAll(declared)
	p.keep(&declared[0], tuples)
	return tuples
}

func (p *packs) pack(tuples []tuple.Tuple) ([]byte, error) {
	data, err := tuple.Pack(tuples)
	if err == nil {
		p.keep(string(data), tuple.Sorted(tuples))
	}
	return data, err
}

func (p *packs) unpack(data []byte) ([]tuple.Tuple, error) {
	if tuples, ok := p.known(string(data)); ok {
		return tuples, nil
	}
	tuples, err := tuple.Unpack(data)
	if err != nil {
		return nil, err
	}
	tuples = tuple.Sorted(tuples)
	p.keep(string(data), tuples)
	return tuples, nil
}

func (p *packs) known(list lru.Key) ([]tuple.Tuple, bool) {
	held, ok := p.lists.Get(list)
	tuples, _ := held.([]tuple.Tuple)
	return tuples, ok
}

func (p *packs) keep(list lru.Key, tuples []tuple.Tuple) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists.Remove(list)
	p.lists.Add(list, tuples)
	for p.bytes += size(list, tuples); p.bytes > maxPackBytes; {
		p.lists.RemoveOldest()
	}
}

// size is about what a list takes: the packed one, or that of the view, and the tuples in it.
func size(list lru.Key, tuples []tuple.Tuple) int {
	packed, _ := list.(string)
	n := len(packed)
	if _, ofView := list.(*corev1alpha1.Tuple); ofView { // Its texts are those of the tuples.
		n += len(tuples) * int(unsafe.Sizeof(corev1alpha1.Tuple{}))
	}
	for _, t := range tuples {
		n += int(unsafe.Sizeof(t)) + len(t.Object) + len(t.Relation) + len(t.User) + len(t.Condition) + len(t.Context)
	}
	return n
}
