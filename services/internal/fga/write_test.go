package fga

import (
	"context"
	"errors"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/entail-dev/entail/services/internal/fault"
)

// A chunk for which the server needs too long is written in smaller parts.
func TestWriteSplitsSlowChunk(t *testing.T) {
	all := []int{1, 2, 3, 4, 5, 6, 7}
	for name, c := range map[string]struct {
		over  bool
		err   error
		most  int
		calls int
		want  []int
	}{
		"in time":          {false, &serverError{code: cancelled}, 7, 1, all},
		"by halves":        {false, fault.Unavailable(&serverError{code: cancelled}), 2, 7, all},
		"by the transport": {false, &serverError{code: codes.DeadlineExceeded}, 3, 5, all},
		"one by one":       {false, &serverError{code: codes.Canceled}, 1, 13, all},
		"never":            {false, &serverError{code: cancelled}, 0, 3, nil},
		"another error":    {false, errors.New("no"), 2, 1, nil},
		"our own time":     {true, &serverError{code: cancelled}, 2, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var written []int
			calls := 0
			ctx, end := context.WithCancel(t.Context())
			defer end()
			if c.over {
				end()
			}
			err := retryInHalves(ctx, all, func(part []int) error {
				if calls++; len(part) > c.most {
					return c.err
				}
				written = append(written, part...)
				return nil
			})
			if (err == nil) != (c.want != nil) || calls != c.calls || !slices.Equal(written, c.want) {
				t.Errorf("%v after %d calls: %v", written, calls, err)
			}
		})
	}
}
