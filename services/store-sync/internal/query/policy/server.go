// Package policy serves PolicyService. It runs the policy library on policies that a request contains or that are
// registered for a Store. It only translates messages, and bounds the work that callers can cause.
package policy

import (
	"context"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/gen/entail/policy/v1/policyv1connect"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/lint"
	"github.com/entail-dev/entail/services/policy/openfga"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// maxAtOnce bounds the requests in work at a time. Each may use a core for a second, and the process has other work.
const maxAtOnce = 2

// Server implements PolicyService. It keeps nothing of a request.
type Server struct {
	registered RegisteredDocumentsFunc
	limiter    *rpc.CallLimiter
}

// RegisteredDocumentsFunc returns the documents registered for a Store, or their accepted parts, and the options of the Store's
// policy. The caller receives its error.
type RegisteredDocumentsFunc func(ctx context.Context, store string, accepted bool) ([]*syntax.Document, policy.Options, error)

// New returns a server.
func New(registered RegisteredDocumentsFunc) *Server {
	return &Server{registered: registered, limiter: rpc.NewCallLimiter(maxAtOnce)}
}

var _ policyv1connect.PolicyServiceHandler = (*Server)(nil)

// CheckPolicy implements PolicyService.
func (s *Server) CheckPolicy(ctx context.Context, r *policyv1.CheckPolicyRequest) (*policyv1.CheckPolicyResponse, error) {
	release, err := s.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	p, found, err := s.readPolicy(ctx, r.GetPolicy(), false)
	if err != nil {
		return nil, err
	}
	if p != nil && r.GetLint() {
		found = found.Merge(lint.Policy(p))
	}
	if p != nil && r.GetPolicy().GetBeside() != "" {
		found = found.Merge(openfga.CheckModel(p, openfga.Options{MaxTypes: -1, MaxBytes: -1}))
	}
	return &policyv1.CheckPolicyResponse{Ok: !found.HasErrors(), Findings: FindingsToProto(found)}, nil
}
