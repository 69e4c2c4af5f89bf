// Package publish writes to the bus. Every change is a compare-and-swap on the
// subject of its object: whoever publishes says which message it believes to be
// there, so that a writer that is late, repeated or deposed cannot overwrite newer
// state. The caller may repeat any call; what is there already is not written twice.
package publish
