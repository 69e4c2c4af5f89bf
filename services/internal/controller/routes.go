package controller

import (
	"slices"

	"github.com/entail-dev/entail/services/internal/event"
)

// routeObject returns the keys that an object touches now, or touched when it was last routed.
func (e *engine[K]) routeObject(object event.Key) []K {
	now := unionOf(e.reconciler.Keys(object), nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	touched := unionOf(now, e.routes[object])
	if len(now) == 0 {
		delete(e.routes, object)
	} else {
		e.routes[object] = now
	}
	return touched
}

// watchObjects makes objects touch key, and reports whether one of them did not before.
func (e *engine[K]) watchObjects(key K, objects []event.Key) (again bool) {
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

// keepRoutes makes the objects that a pass was about to leave touch its key again, because the pass must run again. The
// caller holds the lock.
func (e *engine[K]) keepRoutes(key K, asked *pending) {
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

// unionOf returns the elements of both slices in order, each once.
func unionOf[K comparable](first, second []K) []K {
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
