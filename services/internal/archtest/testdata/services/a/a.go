// Package a has types that embed others.
package a

import "github.com/entail-dev/entail/services/b"

// Data has only exported fields.
type Data struct{ Name string }

// String returns the name.
func (d Data) String() string { return d.Name }

type helper struct{ count int }

func (h *helper) add() { h.count++ }

type counts[T any] struct{ of T }

func (c counts[T]) one() T { return c.of }

type plain struct{ count int }

// Pointer embeds a pointer.
type Pointer struct{ *Data }

// Helper embeds a helper.
type Helper struct{ helper }

// Generic embeds a generic helper.
type Generic struct{ counts[int] }

// Elsewhere embeds a helper of another package.
type Elsewhere struct{ b.Helper }

// Right embeds only allowed types.
type Right struct {
	Data
	plain
	b.Data
	error
	named helper
}
