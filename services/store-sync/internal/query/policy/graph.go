package policy

import (
	"context"
	"fmt"
	"regexp"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/policy/graph"
)

// maxDrawing bounds the size of a drawing, in bytes.
const maxDrawing = 4 << 20

// GraphPolicy implements PolicyService.
func (s *Server) GraphPolicy(ctx context.Context, r *policyv1.GraphPolicyRequest) (*policyv1.GraphPolicyResponse, error) {
	filter, err := compileGraphFilter(r)
	if err != nil {
		return nil, err
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
		return &policyv1.GraphPolicyResponse{Findings: FindingsToProto(found)}, nil
	}
	if err := filter.Validate(p); err != nil {
		return nil, rpc.NotFoundError("%s", err)
	}
	drawing, err := renderGraph(graph.FromPolicy(p, filter), r.GetFormat())
	if err == nil && len(drawing) > maxDrawing {
		err = fmt.Errorf("the drawing has %d bytes, of at most %d: filter by type, action or owner", len(drawing), maxDrawing)
	}
	if err != nil {
		return nil, rpc.InvalidError("%s", err)
	}
	return &policyv1.GraphPolicyResponse{Content: string(drawing), Findings: FindingsToProto(found)}, nil
}

func renderGraph(g *graph.Graph, format policyv1.Format) ([]byte, error) {
	switch format {
	case policyv1.Format_FORMAT_SVG:
		return g.RenderSVG()
	case policyv1.Format_FORMAT_DOT:
		return g.RenderDOT()
	case policyv1.Format_FORMAT_MERMAID:
		return g.RenderMermaid()
	default:
		return nil, fmt.Errorf("there is no format %d", format)
	}
}

// compileGraphFilter compiles the expressions of a request. An empty expression filters nothing.
func compileGraphFilter(r *policyv1.GraphPolicyRequest) (graph.Filter, error) {
	f := graph.Filter{Focus: r.GetFocus(), Depth: int(r.GetDepth())}
	for _, e := range []struct {
		field, expression string
		compiled          **regexp.Regexp
	}{
		{"types", r.GetTypes(), &f.Types},
		{"actions", r.GetActions(), &f.Actions},
		{"owners", r.GetOwners(), &f.Owners},
		{"collapse", r.GetCollapse(), &f.Collapse},
	} {
		if e.expression == "" {
			continue
		}
		compiled, err := regexp.Compile(e.expression)
		if err != nil {
			return f, rpc.InvalidError("%s: %s", e.field, err)
		}
		*e.compiled = compiled
	}
	return f, nil
}
