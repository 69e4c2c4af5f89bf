// Package plan makes one policy of the PolicyDocuments that services register for a Store,
// and decides what of it is live.
//
// A document that fits together with the others goes live at once. One that does not is refused: of two that claim a name, the one
// with the weaker claim. Its last valid text stays, as far as it still holds and the present text mentions it; the AuthorizationModel
// that store-sync makes of the document keeps that text. A removal always acts, even if other documents need what was there.
//
// What other modules define is read from the last merge of the Store's modules, never from their texts.
//
// The package is pure: no I/O, no clock, no log.
package plan
