// Package event is what travels on the bus, as the services see it: a [Change] is
// the newest state of one Kubernetes object, a [Key] names the object, and a key
// is one subject. The wire form is entail.event.v1 (proto/entail/event/v1).
//
// An event never says what to do. It says "this is how the object is now", so it
// may come twice, late, or not at all when a newer one has replaced it.
package event
