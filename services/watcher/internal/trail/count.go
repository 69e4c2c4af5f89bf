package trail

import (
	"context"

	"github.com/entail-dev/entail/services/internal/topology"
)

// CountLetters tells how many dead letters there are.
func (t *Trail) CountLetters(ctx context.Context) (uint64, error) {
	stream, err := t.stream(ctx, topology.DeadLetters)
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().State.Msgs, nil
}
