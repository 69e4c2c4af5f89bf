package declared

import (
	"sync"
	"unsafe"

	"k8s.io/utils/lru"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// tupleListCache caches the tuples of packed records and of long declared lists. Every pass reads them, and unpacking takes
// longer than the rest of the pass.
type tupleListCache struct {
	mu    sync.Mutex
	lists *lru.Cache
	// bytes estimates the size of the cache.
	bytes int
}

// maxPacks bounds the number of cached lists, and maxPackBytes their size. They share tuples with [verifiedRecords].
const (
	maxPacks     = 64
	maxPackBytes = 64 << 20
)

func newTupleListCache() *tupleListCache {
	p := &tupleListCache{}
	p.lists = lru.NewWithEvictionFunc(maxPacks, func(list lru.Key, held any) {
		tuples, _ := held.([]tuple.Tuple)
		p.bytes -= cachedListSize(list, tuples)
	})
	return p
}

// parseDeclaredList returns the tuples of a list of the informer, which is never modified.
func (p *tupleListCache) parseDeclaredList(declared []corev1alpha1.Tuple) []tuple.Tuple {
	if len(declared) <= corev1alpha1.LongRecord {
		return tuple.ParseDeclaredList(declared)
	}
	if tuples, ok := p.cachedTuples(&declared[0]); ok {
		return tuples
	}
	tuples := tuple.ParseDeclaredList(declared)
	p.cacheTuples(&declared[0], tuples)
	return tuples
}

func (p *tupleListCache) packTuples(tuples []tuple.Tuple) ([]byte, error) {
	data, err := tuple.PackTuples(tuples)
	if err == nil {
		p.cacheTuples(string(data), tuple.SortedUnique(tuples))
	}
	return data, err
}

func (p *tupleListCache) unpackTuples(data []byte) ([]tuple.Tuple, error) {
	if tuples, ok := p.cachedTuples(string(data)); ok {
		return tuples, nil
	}
	tuples, err := tuple.UnpackTuples(data)
	if err != nil {
		return nil, err
	}
	tuples = tuple.SortedUnique(tuples)
	p.cacheTuples(string(data), tuples)
	return tuples, nil
}

func (p *tupleListCache) cachedTuples(list lru.Key) ([]tuple.Tuple, bool) {
	held, ok := p.lists.Get(list)
	tuples, _ := held.([]tuple.Tuple)
	return tuples, ok
}

func (p *tupleListCache) cacheTuples(list lru.Key, tuples []tuple.Tuple) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists.Remove(list)
	p.lists.Add(list, tuples)
	for p.bytes += cachedListSize(list, tuples); p.bytes > maxPackBytes; {
		p.lists.RemoveOldest()
	}
}

// cachedListSize estimates the bytes of a list and its tuples.
func cachedListSize(list lru.Key, tuples []tuple.Tuple) int {
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
