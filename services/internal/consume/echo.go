package consume

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/entail-dev/entail/services/internal/event"
)

const (
	// maxEchoes and echoTTL bound what is remembered of our own writes: the bus never tells of
	// a state that a newer one replaced in between. What is forgotten costs a pass.
	maxEchoes = 65536
	echoTTL   = 10 * time.Minute
)

// echoes remembers which key wrote a state, until the event comes that tells of it.
type echoes struct{ states *cache.LRUExpireCache }

// state tells a state of an object from others. Of a deletion there is no more to tell than
// whose it is.
type state struct {
	key          event.Key
	uid, version string
}

func stateOf(c event.Change) state {
	if c.Deleted {
		return state{key: c.Key, uid: c.UID}
	}
	return state{c.Key, c.UID, c.ResourceVersion}
}

func newEchoes() *echoes { return &echoes{cache.NewLRUExpireCache(maxEchoes)} }

// expect notes that key wrote a state.
func (e *echoes) expect(c event.Change, key any) { e.states.Add(stateOf(c), key, echoTTL) }

// others are keys without the one that wrote the state itself.
func others[K comparable](e *echoes, c event.Change, keys []K) []K {
	writer, ok := e.states.Get(stateOf(c))
	if !ok {
		return keys
	}
	e.states.Remove(stateOf(c))
	return slices.DeleteFunc(keys, func(k K) bool { return any(k) == writer })
}
