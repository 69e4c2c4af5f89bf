// Package kube is the adapter to the API server. It reads objects as changes, applies the part of a status that a
// service owns, guards deletions with finalizers, and records Events. Each object that it returns is the newest state
// at the API server, so a view can store it.
package kube
