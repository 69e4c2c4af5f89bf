// Package b has types that package a embeds.
package b

// Data has no methods.
type Data struct{ count int }

// Helper has a method and a private field.
type Helper struct{ count int }

// Add increases the count.
func (h *Helper) Add() { h.count++ }
