package webhook

import (
	"context"

	"github.com/entail-dev/entail/services/internal/decide"
)

// Decider answers questions. Whoever asks has seen to it that the state is complete and not too old. An error says that
// nobody can tell now: that is neither yes nor no, and nobody may keep it.
type Decider interface {
	// Decide gives a proof with a yes, as far as it knows one.
	Decide(ctx context.Context, q decide.Question) (why decide.Proof, allowed bool, err error)
}

var _ Decider = (*state)(nil)

// Decide implements [Decider] by the index, which needs nobody.
func (s *state) Decide(_ context.Context, q decide.Question) (why decide.Proof, allowed bool, err error) {
	x, err := s.index()
	if err == nil {
		why, allowed = x.Decide(q)
	}
	return why, allowed, err
}
