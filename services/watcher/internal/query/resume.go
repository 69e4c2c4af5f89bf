package query

import (
	"context"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
)

// Resume ends the halt of all services that follows forged messages.
func (s *Server) Resume(ctx context.Context, _ *syncv1.ResumeRequest) (*syncv1.ResumeResponse, error) {
	reason, err := s.cfg.Resume(ctx)
	if err != nil {
		return nil, err
	}
	return &syncv1.ResumeResponse{Halted: reason}, nil
}
