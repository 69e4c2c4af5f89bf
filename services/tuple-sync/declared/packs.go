package declared

import (
	"sync"
	"unsafe"

	"k8s.io/utils/lru"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// packedCache caches the tuples of packed records and of long declared lists. Every pass reads them, and unpacking takes
// longer than the rest of the pass.
type packedCache struct {
	mu    sync.Mutex
	lists *lru.Cache
	// bytes estimates the size of the cache.
	bytes int
}

// maxPacks bounds the number of cached lists, and maxPackBytes their size. They share tuples with [records].
const (
	maxPacks     = 64
	maxPackBytes = 64 << 20
)

func newPacks() *packedCache {
	p := &packedCache{}
	p.lists = lru.NewWithEvictionFunc(maxPacks, func(list lru.Key, held any) {
		tuples, _ := held.([]tuple.Tuple)
		p.bytes -= listSize(list, tuples)
	})
	return p
}

// parseList returns the tuples of a list of the view, which is never modified.
func (p *packedCache) parseList(declared []corev1alpha1.Tuple) []tuple.Tuple {
	if len(declared) <= corev1alpha1.LongRecord {
		return tuple.ParseAll(declared)
	}
	if tuples, ok := p.cachedTuples(&declared[0]); ok {
		return tuples
	}
	tuples := tuple.ParseAll(declared)
	p.cacheTuples(&declared[0], tuples)
	return tuples
}

func (p *packedCache) packTuples(tuples []tuple.Tuple) ([]byte, error) {
	data, err := tuple.Pack(tuples)
	if err == nil {
		p.cacheTuples(string(data), tuple.Sorted(tuples))
	}
	return data, err
}

func (p *packedCache) unpackTuples(data []byte) ([]tuple.Tuple, error) {
	if tuples, ok := p.cachedTuples(string(data)); ok {
		return tuples, nil
	}
	tuples, err := tuple.Unpack(data)
	if err != nil {
		return nil, err
	}
	tuples = tuple.Sorted(tuples)
	p.cacheTuples(string(data), tuples)
	return tuples, nil
}

func (p *packedCache) cachedTuples(list lru.Key) ([]tuple.Tuple, bool) {
	held, ok := p.lists.Get(list)
	tuples, _ := held.([]tuple.Tuple)
	return tuples, ok
}

func (p *packedCache) cacheTuples(list lru.Key, tuples []tuple.Tuple) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists.Remove(list)
	p.lists.Add(list, tuples)
	for p.bytes += listSize(list, tuples); p.bytes > maxPackBytes; {
		p.lists.RemoveOldest()
	}
}

// listSize estimates the bytes of a list and its tuples.
func listSize(list lru.Key, tuples []tuple.Tuple) int {
	packed, _ := list.(string)
	n := len(packed)
	if _, ofView := list.(*corev1alpha1.Tuple); ofView { // The list shares its strings with the tuples.
		n += len(tuples) * int(unsafe.Sizeof(corev1alpha1.Tuple{}))
	}
	for _, t := range tuples {
		n += int(unsafe.Sizeof(t)) + len(t.Object) + len(t.Relation) + len(t.User) + len(t.Condition) + len(t.Context)
	}
	return n
}
