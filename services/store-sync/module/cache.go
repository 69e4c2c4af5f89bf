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
type Cache[Q, A any] struct{ kept *lru.Cache }

type cached[Q, A any] struct {
	question Q
	answer   A
}

// NewCache makes an empty one.
func NewCache[Q, A any]() Cache[Q, A] { return Cache[Q, A]{lru.New(maxCached)} }

// Get answers a question about a Store. Neither it nor the answer may be changed afterwards.
func (c Cache[Q, A]) Get(store event.Key, question Q, answer func(Q) A) A {
	kept, _ := c.kept.Get(store)
	if known, ok := kept.(cached[Q, A]); ok && reflect.DeepEqual(known.question, question) {
		return known.answer
	}
	made := cached[Q, A]{question, answer(question)}
	c.kept.Add(store, made)
	return made.answer
}
