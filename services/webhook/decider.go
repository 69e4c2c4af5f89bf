package webhook

import (
	"context"

	"github.com/entail-dev/entail/services/internal/authz"
)

// Decider decides questions. The caller ensures that the state is complete and fresh. An error means that the answer is
// unknown now. It is neither yes nor no, and must not be cached.
type Decider interface {
	// Decide reports whether access is allowed. With a yes it returns the proof, if the decider holds one.
	Decide(ctx context.Context, q authz.Query) (why authz.Proof, allowed bool, err error)
}

var _ Decider = (*indexState)(nil)

// Decide implements [Decider] by the index. It does no I/O.
func (s *indexState) Decide(_ context.Context, q authz.Query) (why authz.Proof, allowed bool, err error) {
	x, err := s.currentIndex()
	if err == nil {
		why, allowed = x.Decide(q)
	}
	return why, allowed, err
}
