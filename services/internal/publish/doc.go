// Package publish writes changes, snapshot markers and barriers to the streams. Only the watcher uses it.
//
// Every change is a compare-and-swap on the subject of its object: the publisher names the message that it expects
// there. So a late or repeated write, or a write by a former leader, cannot overwrite newer state. Every call may be
// repeated: a state that is already stored is not written again.
package publish
