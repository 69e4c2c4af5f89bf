package module

import (
	"reflect"

	"k8s.io/utils/lru"

	"github.com/entail-dev/entail/services/internal/event"
)

// maxCached bounds the Stores whose answers are kept.
const maxCached = 64

// Cache keeps the last answer for Stores at work: most passes follow a change of status and ask
// the same as before. Make one with [NewCache].
type Cache[Q, A any] struct {
	kept   *lru.Cache
	answer func(Q) (A, error)
}

type cached[Q, A any] struct {
	question Q
	answer   A
	err      error
}

// NewCache makes an empty one of the answers that a function gives.
func NewCache[Q, A any](answer func(Q) (A, error)) *Cache[Q, A] {
	return &Cache[Q, A]{lru.New(maxCached), answer}
}

// Get answers a question about a Store. Neither it nor the answer may be changed afterwards.
func (c *Cache[Q, A]) Get(store event.Key, question Q) (A, error) {
	kept, _ := c.kept.Get(store)
	known, ok := kept.(cached[Q, A])
	if !ok || !reflect.DeepEqual(known.question, question) {
		known = cached[Q, A]{question: question}
		known.answer, known.err = c.answer(question)
		c.kept.Add(store, known)
	}
	return known.answer, known.err
}
