package ledger

import (
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// packs remembers what packed lists hold, in order: everybody who looks at an object with a long record
// asks, and to unpack it takes longer than all else that is done about it.
type packs struct{ lists *cache.LRUExpireCache }

// maxPacks bounds how many are remembered. They share their tuples with [records].
const maxPacks = 64

func newPacks() *packs { return &packs{cache.NewLRUExpireCache(maxPacks)} }

func (p *packs) pack(tuples []tuple.Tuple) ([]byte, error) {
	data, err := tuple.Pack(tuples)
	if err == nil {
		p.lists.Add(string(data), tuple.Sorted(tuples), memoryTTL)
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
	p.lists.Add(string(data), tuples, memoryTTL)
	return tuples, nil
}
