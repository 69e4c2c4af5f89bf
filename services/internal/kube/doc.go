// Package kube is the adapter to the API server: it reads objects as changes,
// applies the part of a status that a service owns, guards deletions with
// finalizers, and tells people what happened with Events. Everything that it
// returns is a newest state, fit for the view.
package kube
