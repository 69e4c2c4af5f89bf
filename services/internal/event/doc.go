// Package event defines the content of NATS messages for services. A [Change] is the newest state of one Kubernetes
// object, and a [Key] names the object; each key has one subject. The wire format is entail.event.v1
// (proto/entail/event/v1).
//
// A change is a state, never an order. It may come twice, late, or not at all if a newer one has replaced it.
package event
