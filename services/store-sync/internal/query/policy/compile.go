package policy

import (
	"context"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/openfga"
	"github.com/entail-dev/entail/services/policy/spicedb"
)

// CompilePolicy implements PolicyService.
func (s *Server) CompilePolicy(ctx context.Context, r *policyv1.CompilePolicyRequest) (*policyv1.CompilePolicyResponse, error) {
	options := spicedb.Options{Prefix: r.GetSpicedbPrefix(), Unprefixed: r.GetSpicedbUnprefixed()}
	if err := options.Validate(); err != nil {
		return nil, rpc.InvalidError("spicedb_%s", err)
	}
	release, err := s.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	p, found, err := s.readPolicy(ctx, r.GetPolicy(), false)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return &policyv1.CompilePolicyResponse{Findings: FindingsToProto(found)}, nil
	}
	artifacts, more, err := compileToTarget(p, r.GetTarget(), options)
	if err != nil {
		return nil, err
	}
	if found = found.Merge(more); found.HasErrors() {
		artifacts = nil
	}
	return &policyv1.CompilePolicyResponse{Artifacts: artifacts, Findings: FindingsToProto(found)}, nil
}

func compileToTarget(p *policy.Policy, target policyv1.Target, o spicedb.Options) ([]*policyv1.Artifact, policy.Diagnostics, error) {
	one := func(name string, content []byte, found policy.Diagnostics) ([]*policyv1.Artifact, policy.Diagnostics, error) {
		return []*policyv1.Artifact{{Name: name, Content: string(content)}}, found, nil
	}
	switch target {
	case policyv1.Target_TARGET_SPICEDB:
		schema, found := spicedb.CompileSchema(p, o)
		return one("schema.zed", schema, found)
	case policyv1.Target_TARGET_OPENFGA_DSL:
		model, found := openfga.CompileDSL(p, openfga.Options{})
		return one("model.fga", model, found)
	case policyv1.Target_TARGET_OPENFGA_JSON:
		model, found := openfga.CompileJSON(p, openfga.Options{})
		return one("model.json", model, found)
	case policyv1.Target_TARGET_OPENFGA_MODULES:
		modules, found := openfga.CompileModules(p, openfga.Options{})
		artifacts := []*policyv1.Artifact{{Name: "fga.mod", Content: string(openfga.ModFile(modules))}}
		for _, m := range modules {
			artifacts = append(artifacts, &policyv1.Artifact{Name: m.File, Content: string(m.Content)})
		}
		return artifacts, found, nil
	default:
		return nil, nil, rpc.InvalidError("there is no target %d", target)
	}
}
