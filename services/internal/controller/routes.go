package controller

import (
	"slices"

	"github.com/entail-dev/entail/services/internal/event"
)

// updateRoute returns the keys that an object touches now, or touched when it was last routed.
func (e *engine[K]) updateRoute(object event.Key) []K {
	now := unionOfKeys(e.reconciler.AffectedKeys(object), nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	touched := unionOfKeys(now, e.routes[object])
	if len(now) == 0 {
		delete(e.routes, object)
	} else {
		e.routes[object] = now
	}
	return touched
}

// addRoutes makes objects touch key, and reports whether one of them did not before.
func (e *engine[K]) addRoutes(key K, objects []event.Key) (again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, object := range objects {
		again = e.addRoute(object, key) || again
	}
	return again
}

// addRoute makes an object touch key, and reports whether it did not before. The caller holds the lock.
func (e *engine[K]) addRoute(object event.Key, key K) bool {
	if slices.Contains(e.routes[object], key) {
		return false
	}
	e.routes[object] = append(slices.Clip(e.routes[object]), key)
	return true
}

// restoreRoutes makes the objects that a pass was about to leave touch its key again, because the pass must run again. The
// caller holds the lock.
func (e *engine[K]) restoreRoutes(key K, asked *pendingRequest) {
	for object := range asked.gone {
		e.addRoute(object, key)
	}
}

// removeRoute makes an object no longer touch key. The caller holds the lock.
func (e *engine[K]) removeRoute(object event.Key, key K) {
	rest := slices.DeleteFunc(slices.Clone(e.routes[object]), func(k K) bool { return k == key })
	if e.routes[object] = rest; len(rest) == 0 {
		delete(e.routes, object)
	}
}

// unionOfKeys returns the elements of both slices in order, each once.
func unionOfKeys[K comparable](first, second []K) []K {
	all := make([]K, 0, len(first)+len(second))
	for _, keys := range [][]K{first, second} {
		for _, key := range keys {
			if !slices.Contains(all, key) {
				all = append(all, key)
			}
		}
	}
	return all
}
