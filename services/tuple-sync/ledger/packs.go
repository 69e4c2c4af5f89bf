package ledger

import (
	"sync"
	"unsafe"

	"k8s.io/utils/lru"

	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// packs remembers what packed lists hold, in order: everybody who looks at an object with a long record
// asks, and to unpack it takes longer than all else that is done about it.
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
	p.lists = lru.NewWithEvictionFunc(maxPacks, func(packed lru.Key, list any) {
		tuples, _ := list.([]tuple.Tuple)
		data, _ := packed.(string)
		p.bytes -= size(data, tuples)
	})
	return p
}

func (p *packs) pack(tuples []tuple.Tuple) ([]byte, error) {
	data, err := tuple.Pack(tuples)
	if err == nil {
		p.keep(string(data), tuple.Sorted(tuples))
	}
	return data, err
}

func (p *packs) unpack(data []byte) ([]tuple.Tuple, error) {
	if known, ok := p.lists.Get(string(data)); ok {
		tuples, _ := known.([]tuple.Tuple)
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

func (p *packs) keep(data string, tuples []tuple.Tuple) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists.Remove(data)
	p.lists.Add(data, tuples)
	for p.bytes += size(data, tuples); p.bytes > maxPackBytes; {
		p.lists.RemoveOldest()
	}
}

// size is about what a list takes.
func size(data string, tuples []tuple.Tuple) int {
	n := len(data)
	for _, t := range tuples {
		n += int(unsafe.Sizeof(t)) + len(t.Object) + len(t.Relation) + len(t.User) + len(t.Condition) + len(t.Context)
	}
	return n
}
