package webhook

import (
	"context"
	"fmt"
	"time"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/rpc"
)

// following is the interval between two queries of a decider that may lag behind the index.
const following = 50 * time.Millisecond

// decideAtMinimumState decides a question with a minimum state. The index already holds that state, but OpenFGA may receive it
// later. So the question is repeated until the decider agrees with the index, at most for patience.
func decideAtMinimumState(
	ctx context.Context, d Decider, x *authz.Index, q authz.Query, least *accessv1.AtLeast,
) (why authz.Proof, allowed bool, err error) {
	if least.GetRevision() == "" && least.GetObject() == nil {
		return d.Decide(ctx, q)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		why, allowed, err = d.Decide(ctx, q)
		if _, declared := x.Decide(q); err != nil || allowed == declared {
			return why, allowed, err
		}
		if !backoff.Sleep(ctx, following) {
			return authz.Proof{}, false, rpc.IncompleteError(fmt.Errorf("%w: OpenFGA is not up to date with the declared objects yet", informer.ErrIncomplete))
		}
	}
}
