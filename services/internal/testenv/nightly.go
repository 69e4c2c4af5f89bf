//go:build nightly

package testenv

// Nightly reports whether tests run in full. CI takes a sample where a full run takes minutes.
const Nightly = true
