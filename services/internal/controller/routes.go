package controller

import (
	"slices"

	"github.com/entail-dev/entail/services/internal/event"
)

// updateRoute returns the keys that an object affects now or affected when it was last routed. It stores the present
// keys.
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

// addRoutes adds a route from each object to key. It reports whether a route was missing.
func (e *engine[K]) addRoutes(key K, objects []event.Key) (added bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, object := range objects {
		added = e.addRoute(object, key) || added
	}
	return added
}

// addRoute adds a route from an object to key. It reports whether the route was missing. The caller holds the lock.
func (e *engine[K]) addRoute(object event.Key, key K) bool {
	if slices.Contains(e.routes[object], key) {
		return false
	}
	e.routes[object] = append(slices.Clip(e.routes[object]), key)
	return true
}

// restoreRoutes adds the routes again that were removed before a reconciliation, because the key must be reconciled
// again. The caller holds the lock.
func (e *engine[K]) restoreRoutes(key K, asked *pendingRequest) {
	for object := range asked.gone {
		e.addRoute(object, key)
	}
}

// removeRoute removes the route from an object to key. The caller holds the lock.
func (e *engine[K]) removeRoute(object event.Key, key K) {
	rest := slices.DeleteFunc(slices.Clone(e.routes[object]), func(k K) bool { return k == key })
	if e.routes[object] = rest; len(rest) == 0 {
		delete(e.routes, object)
	}
}

// unionOfKeys returns the elements of both slices in order, without duplicates.
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
