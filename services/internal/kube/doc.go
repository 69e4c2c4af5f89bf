// Package kube is the adapter to the API server. It reads objects as changes, applies the part of a status that a
// service owns, guards deletions with finalizers, and records Events. Everything that it returns is a newest state,
// which a view can store.
package kube
