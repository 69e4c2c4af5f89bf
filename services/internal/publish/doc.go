// Package publish writes to the streams. Every change is a compare-and-swap on the subject of its object: the publisher
// names the message that it expects there. So a late, repeated or deposed writer cannot overwrite newer state. Every
// call may be repeated: a state that is already stored is not written again.
package publish
