//go:build nightly

package testenv

// Nightly reports whether tests run completely. In CI, tests that would take minutes run only a sample.
const Nightly = true
