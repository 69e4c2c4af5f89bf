package exit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"connectrpc.com/connect"

	"github.com/entail-dev/entail/services/entail/internal/exit"
)

// exitCodeError is an error with its own exit code.
type exitCodeError int

func (w exitCodeError) Error() string { return fmt.Sprint("worse ", int(w)) }
func (w exitCodeError) ExitCode() int { return int(w) }

func TestCodeDistinguishesErrors(t *testing.T) {
	answer := func(code connect.Code) error { return fmt.Errorf("ask: %w", connect.NewError(code, errors.New("no"))) }
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"nothing":                        {nil, exit.OK},
		"anything":                       {errors.New("?"), exit.Failure},
		"the command line":               {fmt.Errorf("%w: --limit 0", exit.ErrUsage), exit.Usage},
		"a code of its own":              {fmt.Errorf("compare: %w", exitCodeError(12)), 12},
		"the command line before others": {errors.Join(exitCodeError(12), exit.ErrUsage), exit.Usage},
		"a question that cannot be":      {answer(connect.CodeInvalidArgument), exit.Usage},
		"an unknown name in a file":      {exit.NotFoundError{Err: errors.New("no type x")}, exit.NotFound},
		"nothing of the name":            {answer(connect.CodeNotFound), exit.NotFound},
		"a server that is away":          {answer(connect.CodeUnavailable), exit.Unavailable},
		"a server that is slow":          {answer(connect.CodeDeadlineExceeded), exit.Unavailable},
		"a server that fails":            {answer(connect.CodeInternal), exit.Failure},
		"a question that is forbidden":   {answer(connect.CodePermissionDenied), exit.Failure},
		"Ctrl-C":                         {context.Canceled, exit.Failure},
	} {
		if got := exit.Code(test.err); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
