// Package reconcile repeats planning when objects change meanwhile, a bounded number of times.
package reconcile

import (
	"errors"
	"fmt"

	"github.com/entail-dev/entail/services/internal/fault"
)

// ErrStale means that the state from which a plan was made has changed. The view holds the newest state: plan again.
var ErrStale = errors.New("objects keep changing")

// attempts bounds the plans of one pass. Then other keys run.
const attempts = 8

// RetryWhileStale calls try until the error is not [ErrStale]. If objects keep changing, it returns an error that is
// [fault.Unavailable], so that the pass comes again later.
func RetryWhileStale(what fmt.Stringer, try func() error) error {
	var err error
	for range attempts {
		if err = try(); !errors.Is(err, ErrStale) {
			return err
		}
	}
	return fault.Unavailable(fmt.Errorf("%s: %w", what, err))
}
