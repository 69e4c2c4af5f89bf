package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/entail-dev/entail/services/internal/event"
)

const (
	// maxEchoes and echoTTL bound the memory. An entry may never be taken, because the stream may replace the state
	// before it is delivered. An entry that is dropped too early costs one extra reconciliation.
	maxEchoes = 65536
	echoTTL   = 10 * time.Minute
)

// ownWriteEchoes stores which key wrote a state until the change with this state arrives on the stream. The controller
// need not reconcile the key again for its own write.
type ownWriteEchoes struct{ states *cache.LRUExpireCache }

// objectStateID identifies one state of an object.
type objectStateID struct {
	key                 event.Key
	uid, epoch, version string
}

func objectStateIDOf(c event.Change) objectStateID {
	return objectStateID{c.Key, c.UID, c.Epoch, c.ResourceVersion}
}

// expectEcho stores that key wrote the state in c.
func (e ownWriteEchoes) expectEcho(c event.Change, key any) {
	e.states.Add(objectStateIDOf(c), key, echoTTL)
}

// takeEcho returns the key that wrote the state in the message, and removes the entry. A replay is never an echo.
func (e ownWriteEchoes) takeEcho(d *delivery) (writer any, ok bool) {
	if !d.replay {
		writer, ok = e.states.Get(objectStateIDOf(d.change))
		e.states.Remove(objectStateIDOf(d.change))
	}
	return writer, ok
}
