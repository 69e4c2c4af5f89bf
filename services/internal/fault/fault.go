// Package fault marks errors with what happens next, so that one place decides it
// for every service:
//
//   - [Terminal]: no retry can help. The message becomes a dead letter.
//   - [Unavailable]: a dependency is at fault. Retry for ever, never count.
//   - unmarked: retry with backoff, then a dead letter.
//
// Adapters and decoders mark; nobody else needs to look.
package fault

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// class is the mark itself; it wraps the error so that errors.Is and errors.As see through it.
type class struct {
	error
	terminal bool
}

func (c class) Unwrap() error { return c.error }

// Terminal marks err as one that no retry can cure. Terminal(nil) is nil.
func Terminal(err error) error { return mark(err, true) }

// Unavailable marks err as the fault of a dependency. Unavailable(nil) is nil.
func Unavailable(err error) error { return mark(err, false) }

// IsTerminal reports whether the outermost mark in err's tree is [Terminal].
func IsTerminal(err error) bool {
	c, ok := errors.AsType[class](err)
	return ok && c.terminal
}

// IsUnavailable reports whether the outermost mark in err's tree is [Unavailable].
func IsUnavailable(err error) bool {
	c, ok := errors.AsType[class](err)
	return ok && !c.terminal
}

func mark(err error, terminal bool) error {
	if err == nil {
		return nil
	}
	return class{error: err, terminal: terminal}
}

// told is how many errors of many are told.
const told = 3

// several are errors of which only some are told.
type several []error

func (s several) Error() string {
	var texts []string
	for _, err := range s[:min(len(s), told)] {
		texts = append(texts, err.Error())
	}
	if more := len(s) - told; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "\n")
}

func (s several) Unwrap() []error { return s }

// Join is [errors.Join] of what went wrong with many objects: it tells the first few, and how many more there are.
func Join(errs ...error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return several(errs)
}
