// Package reconcile repeats planning, a limited number of times, when objects change between a plan and its execution.
package reconcile

import (
	"errors"
	"fmt"

	"github.com/entail-dev/entail/services/internal/fault"
)

// ErrStale means that the state from which a plan was made has changed. The informer holds the newest state, so the
// caller must plan again.
var ErrStale = errors.New("objects keep changing")

// attempts bounds the plans that one call makes, so that one key does not block the others.
const attempts = 8

// RetryWhileStale calls try until its error is not [ErrStale]. If objects keep changing, the error is
// [fault.Unavailable], so that the key is retried later.
func RetryWhileStale(what fmt.Stringer, try func() error) error {
	var err error
	for range attempts {
		if err = try(); !errors.Is(err, ErrStale) {
			return err
		}
	}
	return fault.Unavailable(fmt.Errorf("%s: %w", what, err))
}
