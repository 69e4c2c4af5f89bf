// Package event defines the content of NATS messages. A [Change] is the newest state of one Kubernetes object, and a
// [Key] identifies the object. The wire format is entail.event.v1 (proto/entail/event/v1).
//
// A change is a state, never an order. It may be delivered twice or late. It may never be delivered if a newer change
// has replaced it. Each key has its own subject. The package does no I/O.
package event
