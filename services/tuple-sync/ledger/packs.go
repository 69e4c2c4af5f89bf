package ledger

import (
	"k8s.io/apimachinery/pkg/util/cache"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// packs remembers what packed lists hold, in order, and what long lists of the view say: everybody who looks at an
// object with a long record asks, and to unpack it takes longer than all else that is done about it.
type packs struct{ lists *cache.LRUExpireCache }

// maxPacks bounds how many are remembered. They share their tuples with [records].
const maxPacks = 64

func newPacks() *packs { return &packs{cache.NewLRUExpireCache(maxPacks)} }

// parse reads a list that the view holds, which nobody changes.
func (p *packs) parse(declared []corev1alpha1.Tuple) []tuple.Tuple {
	if len(declared) <= corev1alpha1.LongRecord {
		return tuple.ParseAll(declared)
	}
	if known, ok := p.lists.Get(&declared[0]); ok {
		tuples, _ := known.([]tuple.Tuple)
		return tuples
	}
	tuples := tuple.ParseAll(declared)
	p.lists.Add(&declared[0], tuples, memoryTTL)
	return tuples
}

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
