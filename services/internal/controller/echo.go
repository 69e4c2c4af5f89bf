package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/entail-dev/entail/services/internal/event"
)

const (
	// maxEchoes and echoTTL bound the memory of our own writes: the stream never delivers a state that a newer one
	// replaced. A forgotten echo costs one pass.
	maxEchoes = 65536
	echoTTL   = 10 * time.Minute
)

// echoes remembers which key wrote a state, until the change with that state arrives.
type echoes struct{ states *cache.LRUExpireCache }

// objectState identifies one state of an object.
type objectState struct {
	key                 event.Key
	uid, epoch, version string
}

func objectStateOf(c event.Change) objectState {
	return objectState{c.Key, c.UID, c.Epoch, c.ResourceVersion}
}

// expectEcho records that key wrote a state.
func (e echoes) expectEcho(c event.Change, key any) { e.states.Add(objectStateOf(c), key, echoTTL) }

// takeEcho returns the key that wrote the state in a message, once per state. A replay is never an echo.
func (e echoes) takeEcho(d *delivery) (writer any, ok bool) {
	if !d.replay {
		writer, ok = e.states.Get(objectStateOf(d.change))
		e.states.Remove(objectStateOf(d.change))
	}
	return writer, ok
}
