// Package b has what a embeds.
package b

// Data has no methods.
type Data struct{ count int }

// Helper has methods and a field of its own.
type Helper struct{ count int }

// Add is one of them.
func (h *Helper) Add() { h.count++ }
