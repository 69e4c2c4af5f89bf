package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/entail-dev/entail/services/internal/fault"
)

func TestOutermostMarkDecides(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err                   error
		terminal, unavailable bool
	}{
		"no error":                    {err: nil},
		"unmarked":                    {err: io.EOF},
		"terminal":                    {err: fault.Terminal(io.EOF), terminal: true},
		"unavailable":                 {err: fault.Unavailable(io.EOF), unavailable: true},
		"wrapped terminal":            {err: fmt.Errorf("read: %w", fault.Terminal(io.EOF)), terminal: true},
		"terminal around unavailable": {err: fault.Terminal(fmt.Errorf("x: %w", fault.Unavailable(io.EOF))), terminal: true},
		"unavailable around terminal": {err: fault.Unavailable(fault.Terminal(io.EOF)), unavailable: true},
		"joined":                      {err: errors.Join(io.EOF, fault.Unavailable(io.ErrNoProgress)), unavailable: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := fault.IsTerminal(test.err); got != test.terminal {
				t.Errorf("IsTerminal = %v, want %v", got, test.terminal)
			}
			if got := fault.IsUnavailable(test.err); got != test.unavailable {
				t.Errorf("IsUnavailable = %v, want %v", got, test.unavailable)
			}
		})
	}
}

func TestMarkKeepsTextAndCause(t *testing.T) {
	t.Parallel()
	err := fault.Terminal(fmt.Errorf("decode: %w", io.EOF))
	if !errors.Is(err, io.EOF) || err.Error() != "decode: EOF" {
		t.Errorf("mark changed the error: %v", err)
	}
	if fault.Terminal(nil) != nil || fault.Unavailable(nil) != nil {
		t.Error("a mark on nil is an error")
	}
}

func TestJoinListsFirstErrors(t *testing.T) {
	t.Parallel()
	var errs []error
	for i := range 1000 {
		errs = append(errs, nil, fmt.Errorf("object %d: no answer", i))
	}
	last := fault.Unavailable(io.EOF)
	err := fault.Join(append(errs, last)...)
	if want := "object 0: no answer\nobject 1: no answer\nobject 2: no answer\nand 998 more"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if !fault.IsUnavailable(err) || !errors.Is(err, io.EOF) {
		t.Error("the last of them is not found")
	}
	if got := fault.Join(nil, io.EOF).Error(); got != io.EOF.Error() {
		t.Errorf("one error: got text %q", got)
	}
	if fault.Join() != nil || fault.Join(nil, nil) != nil {
		t.Error("nothing went wrong, and it is an error")
	}
}

func ExampleUnavailable() {
	err := fmt.Errorf("write tuples: %w", fault.Unavailable(errors.New("connection refused")))
	fmt.Println(err, "- retry for ever:", fault.IsUnavailable(err))
	// Output: write tuples: connection refused - retry for ever: true
}
