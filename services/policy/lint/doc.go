// Package lint tells what is valid in a policy and yet probably not meant, or will trouble somebody later.
// All of it is warnings.
package lint
