// Package fault marks errors with a class. The class decides what happens next:
//   - [Terminal]: no retry can help. The message becomes a dead letter.
//   - [Unavailable]: a dependency caused the error. Retry without a limit, and do not count the retries.
//   - unmarked: retry with backoff. After too many retries the message becomes a dead letter.
//
// Adapters and decoders mark errors, one function acts on the mark, and all other code only passes errors on.
package fault

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// classifiedError is an error with a mark. It wraps the error, so errors.Is and errors.As still work.
type classifiedError struct {
	error
	terminal bool
}

func (c classifiedError) Unwrap() error { return c.error }

// Terminal marks err: no retry can help. Terminal(nil) is nil.
func Terminal(err error) error { return withClass(err, true) }

// Unavailable marks err: a dependency caused it. Unavailable(nil) is nil.
func Unavailable(err error) error { return withClass(err, false) }

// IsTerminal reports whether the outermost mark in err's tree is [Terminal].
func IsTerminal(err error) bool {
	c, ok := errors.AsType[classifiedError](err)
	return ok && c.terminal
}

// IsUnavailable reports whether the outermost mark in err's tree is [Unavailable].
func IsUnavailable(err error) bool {
	c, ok := errors.AsType[classifiedError](err)
	return ok && !c.terminal
}

func withClass(err error, terminal bool) error {
	if err == nil {
		return nil
	}
	return classifiedError{error: err, terminal: terminal}
}

// maxPrinted bounds the number of errors that [Join] prints.
const maxPrinted = 3

// joinedErrors holds errors. Its message contains only the first few.
type joinedErrors []error

func (s joinedErrors) Error() string {
	var texts []string
	for _, err := range s[:min(len(s), maxPrinted)] {
		texts = append(texts, err.Error())
	}
	if more := len(s) - maxPrinted; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "\n")
}

func (s joinedErrors) Unwrap() []error { return s }

// Join returns one error for the errors of many objects. Its message contains the first few errors and the number of
// the others.
func Join(errs ...error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return joinedErrors(errs)
}
