// Package plan makes one policy from the PolicyDocuments that services register for a Store, and decides which part of
// it is live.
//
// A document that fits together with the others goes live at once. Any other is refused: if two documents claim a name,
// the one with the weaker claim. The last valid text of a refused document stays, as far as it is still valid and the
// present text mentions it. The AuthorizationModel that store-sync makes of the document keeps that text. A removal
// always takes effect, even if other documents need the removed element.
//
// The definitions of other modules come from the last merge of the Store's modules, never from their texts.
//
// The package is pure: no I/O, no clock, no log.
package plan
