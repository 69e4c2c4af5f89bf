package policy

import (
	"context"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/diff"
)

// DiffPolicies implements PolicyService.
func (s *Server) DiffPolicies(ctx context.Context, r *policyv1.DiffPoliciesRequest) (*policyv1.DiffPoliciesResponse, error) {
	release, err := s.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	before, wasFound, err := s.readComparedPolicy(ctx, r.GetOld())
	if err != nil {
		return nil, err
	}
	after, isFound, err := s.readComparedPolicy(ctx, r.GetNew())
	if err != nil {
		return nil, err
	}
	response := &policyv1.DiffPoliciesResponse{OldFindings: FindingsToProto(wasFound), NewFindings: FindingsToProto(isFound)}
	if before == nil || after == nil {
		return response, nil
	}
	changes := diff.Policies(before, after)
	response.Worst = classToProto(diff.WorstClass(changes))
	response.Truncated, response.Total = len(changes) > maxListed, int32(len(changes))
	for _, c := range changes[:min(maxListed, len(changes))] {
		response.Changes = append(response.Changes, &policyv1.Change{
			Class: classToProto(c.Class), What: string(c.What), Type: c.Type, Name: c.Name, Message: sanitizeText(c.Message),
			Old: placeToProto(c.Old), New: placeToProto(c.New),
		})
	}
	return response, nil
}

// readComparedPolicy returns one of the policies to compare, for a Store its accepted part. The policy of a Store without
// documents is empty.
func (s *Server) readComparedPolicy(ctx context.Context, m *policyv1.Policy) (*policy.Policy, policy.Diagnostics, error) {
	p, found, err := s.readPolicy(ctx, m, true)
	if m.GetStore() != "" && len(found) == 1 && found[0].Code == policy.CodeEmpty {
		return &policy.Policy{}, nil, err
	}
	return p, found, err
}

func classToProto(c diff.ChangeClass) policyv1.Class {
	switch c {
	case diff.None:
		return policyv1.Class_CLASS_NONE
	case diff.Harmless:
		return policyv1.Class_CLASS_HARMLESS
	case diff.Narrowing:
		return policyv1.Class_CLASS_NARROWING
	case diff.Widening:
		return policyv1.Class_CLASS_WIDENING
	case diff.BreakingForIDs:
		return policyv1.Class_CLASS_BREAKING_FOR_IDS
	case diff.BreakingForData:
		return policyv1.Class_CLASS_BREAKING_FOR_DATA
	default:
		return policyv1.Class_CLASS_UNSPECIFIED
	}
}
