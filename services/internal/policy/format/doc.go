// Package format writes policies the one way: [Source] one file, as its author arranged it and with
// its comments, [Canonical] a whole policy as one sorted document.
package format
