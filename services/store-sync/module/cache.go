package module

import (
	"reflect"

	"k8s.io/utils/lru"

	"github.com/entail-dev/entail/services/internal/event"
)

// maxCached bounds the number of Stores with a cached answer.
const maxCached = 64

// PerStoreCache keeps the last answer for each recently used Store. Most passes follow a change of status and repeat the last
// question. Create it with [NewPerStoreCache].
type PerStoreCache[Q, A any] struct {
	kept   *lru.Cache
	answer func(Q) (A, error)
}

type cachedAnswer[Q, A any] struct {
	question Q
	answer   A
	err      error
}

// NewPerStoreCache returns an empty cache for the answers of a function.
func NewPerStoreCache[Q, A any](answer func(Q) (A, error)) *PerStoreCache[Q, A] {
	return &PerStoreCache[Q, A]{lru.New(maxCached), answer}
}

// Get returns the answer to a question about a Store. The caller must change neither of them afterwards.
func (c *PerStoreCache[Q, A]) Get(store event.Key, question Q) (A, error) {
	kept, _ := c.kept.Get(store)
	known, ok := kept.(cachedAnswer[Q, A])
	if !ok || !reflect.DeepEqual(known.question, question) {
		known = cachedAnswer[Q, A]{question: question}
		known.answer, known.err = c.answer(question)
		c.kept.Add(store, known)
	}
	return known.answer, known.err
}
