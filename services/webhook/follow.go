package webhook

import (
	"context"
	"fmt"
	"time"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/decide"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/view"
)

// following is how long nobody asks again who decides by what may follow later.
const following = 50 * time.Millisecond

// decideAtLeast has a question decided. What an answer must take into account is in the index, and elsewhere a little later: who
// decides is asked until they say what the index says.
func decideAtLeast(
	ctx context.Context, d Decider, x *decide.Index, q decide.Question, least *accessv1.AtLeast,
) (why decide.Proof, allowed bool, err error) {
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
			return decide.Proof{}, false, rpc.Incomplete(fmt.Errorf("%w: OpenFGA does not say yet what is declared", view.ErrIncomplete))
		}
	}
}
