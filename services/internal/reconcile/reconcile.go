// Package reconcile is what all reconcilers do alike when the world changes under them: plan
// again, a bounded number of times.
package reconcile

import (
	"errors"
	"fmt"

	"github.com/entail-dev/entail/services/internal/fault"
)

// ErrStale means that what was planned from has changed. The newest state is in the view:
// plan again.
var ErrStale = errors.New("objects keep changing")

// attempts bounds how often one pass plans again; then others get their turn.
const attempts = 8

// Retry tries until the error is not [ErrStale]. When objects keep changing under it, it gives
// up with an error that is [fault.Unavailable], so that the pass comes again later.
func Retry(what fmt.Stringer, try func() error) error {
	var err error
	for range attempts {
		if err = try(); !errors.Is(err, ErrStale) {
			return err
		}
	}
	return fault.Unavailable(fmt.Errorf("%s: %w", what, err))
}
