package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/fault"
)

const (
	// agreement bounds the time for which both are queried again, because a change reaches one of them first.
	agreement     = time.Second
	agreementStep = 50 * time.Millisecond
)

var errDisagree = errors.New("OpenFGA allows this and the declared objects do not: OpenFGA is not up to date yet")

// openFGAAndIndexDecider implements [Decider] by OpenFGA and the index: what OpenFGA allows counts only if the index allows it, too.
type openFGAAndIndexDecider struct{ openFGA, index Decider }

// Decide implements [Decider]. It returns an error if OpenFGA still allows what the index does not.
func (a openFGAAndIndexDecider) Decide(ctx context.Context, q authz.Query) (why authz.Proof, allowed bool, err error) {
	for began := time.Now(); ; {
		if why, allowed, err = a.openFGA.Decide(ctx, q); err != nil || !allowed {
			return why, false, err
		}
		if why, allowed, err = a.index.Decide(ctx, q); err != nil || allowed {
			return why, allowed, err
		}
		if time.Since(began) >= agreement || !backoff.Sleep(ctx, agreementStep) {
			return why, false, fault.Unavailable(errDisagree)
		}
	}
}
