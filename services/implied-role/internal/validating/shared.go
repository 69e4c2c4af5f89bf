package validating

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
)

// patience bounds one shared read.
const patience = 4 * time.Second

// coalesceRead merges concurrent reads of the same thing into one read at a time. Each caller gets the result of a read that
// began after its call.
func coalesceRead[T any](ctx context.Context, reads *singleflight.Group, what string, read func(context.Context) (T, error)) (T, error) {
	type answer struct {
		began time.Time
		value T
	}
	asked := time.Now()
	for {
		reading := reads.DoChan(what, func() (any, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
			defer cancel()
			began := time.Now()
			value, err := read(ctx)
			return answer{began, value}, err
		})
		select {
		case <-ctx.Done():
			return *new(T), ctx.Err()
		case result := <-reading:
			if is, ok := result.Val.(answer); !ok || !is.began.Before(asked) {
				return is.value, result.Err
			}
		}
	}
}
