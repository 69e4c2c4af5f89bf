// Package plan makes one policy of the PolicyDocuments that services register for a Store,
// and decides what of it is live.
//
// Whatever fits together goes live at once. What does not is refused: the newest gives way, so
// a document that is live is never taken down by what somebody else registers, edits or
// deletes. What was valid stays live in its place: the last valid text of a document is kept
// beside its module, in the AuthorizationModel that store-sync makes of it, and is there even
// when the document has gone and others still need it.
//
// The package is pure: no I/O, no clock, no log.
package plan
