package policy

import (
	"context"
	"fmt"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/format"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// FormatPolicy implements PolicyService.
func (s *Server) FormatPolicy(ctx context.Context, r *policyv1.FormatPolicyRequest) (*policyv1.FormatPolicyResponse, error) {
	release, err := s.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	var artifacts []*policyv1.Artifact
	var found policy.Diagnostics
	size := 0
	for _, f := range r.GetFiles().GetFiles() {
		out, findings := format.Source(syntax.File{Name: f.GetName(), Content: f.GetContent()})
		found = found.Merge(findings)
		artifacts = append(artifacts, &policyv1.Artifact{Name: f.GetName(), Content: string(out)})
		if size += len(out); size > maxBytes {
			found = found.Merge(policy.Diagnostics{{
				Place: policy.Place{File: f.GetName()}, Code: policy.CodeLimit, Severity: policy.Error,
				Message: fmt.Sprintf("the formatted files have more than %d bytes", maxBytes), Hint: "format fewer files at a time",
			}})
			break
		}
	}
	if found.HasErrors() {
		artifacts = nil
	}
	return &policyv1.FormatPolicyResponse{Artifacts: artifacts, Findings: FindingsToProto(found)}, nil
}
