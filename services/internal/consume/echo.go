package consume

import (
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

// state tells a state of an object from others.
type state struct {
	key                 event.Key
	uid, epoch, version string
}

func stateOf(c event.Change) state {
	return state{c.Key, c.UID, c.Epoch, c.ResourceVersion}
}

// expect notes that key wrote a state.
func (e echoes) expect(c event.Change, key any) { e.states.Add(stateOf(c), key, echoTTL) }

// take tells which key wrote the state that a message tells of, once. A replay is never an echo.
func (e echoes) take(d *delivery) (writer any, ok bool) {
	if !d.replay {
		writer, ok = e.states.Get(stateOf(d.change))
		e.states.Remove(stateOf(d.change))
	}
	return writer, ok
}
