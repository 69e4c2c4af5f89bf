// Package kube is the adapter to the API server. It reads objects as changes, writes the part of a status that a
// service owns, manages finalizers, and records Events. Each object that it returns is the newest state at the API
// server, so an informer can store it. The package does not watch objects.
package kube
