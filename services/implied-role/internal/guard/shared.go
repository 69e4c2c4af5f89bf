package guard

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
)

// patience is how long a read may take that many wait for.
const patience = 4 * time.Second

// shared reads from the API server for all who ask for the same at a time: one read after the other,
// however many they are. Everybody gets what was read after they asked.
func shared[T any](ctx context.Context, reads *singleflight.Group, what string, read func(context.Context) (T, error)) (T, error) {
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
