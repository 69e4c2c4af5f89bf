package policy

import (
	"context"
	"strings"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/policy/explain"
)

// maxText bounds the length of an explanation, in bytes.
const maxText = 256 << 10

// ExplainAction implements PolicyService.
func (s *Server) ExplainAction(ctx context.Context, r *policyv1.ExplainActionRequest) (*policyv1.ExplainActionResponse, error) {
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
		return &policyv1.ExplainActionResponse{Findings: FindingsToProto(found)}, nil
	}
	tree, err := explain.Action(p, r.GetType(), r.GetAction())
	if err != nil {
		return nil, rpc.NotFoundError("%s", err)
	}
	var l flatTree
	l.addSubtree(tree)
	shown, whole := truncateToLines(tree.RenderText())
	return &policyv1.ExplainActionResponse{
		Nodes: l.nodes, Text: shown, Truncated: l.total > maxListed || !whole, Total: int32(l.total), Findings: FindingsToProto(found),
	}, nil
}

// flatTree holds the nodes of a tree in the order of its text. Nodes refer to each other by number, so a client needs no
// messages nested as deep as the tree.
type flatTree struct {
	nodes []*policyv1.Node
	total int
}

// addSubtree adds a node and returns its number. shown reports whether the node fits into the answer.
func (l *flatTree) addSubtree(t *explain.ActionTree) (number int32, shown bool) {
	l.total++
	node := &policyv1.Node{
		Type: t.Type, Action: t.Action, On: t.On, Ending: endingToProto(t.Ending), Bound: originToProto(t.Bound), NeverGranted: t.NeverGranted,
	}
	if t.Role != nil {
		node.Role = &policyv1.Node_Role{Relation: t.Role.Relation, Holder: t.Role.Holder}
	}
	number = int32(len(l.nodes))
	if shown = number < maxListed; shown {
		l.nodes = append(l.nodes, node)
	}
	for _, s := range t.Steps {
		step := &policyv1.Node_Step{Relation: s.Relation, Action: s.Action, Declared: originToProto(s.Declared), More: int32(s.More)}
		for _, target := range s.Targets {
			if n, ok := l.addSubtree(target); ok {
				step.Targets = append(step.Targets, n)
			} else {
				step.More++
			}
		}
		if len(step.GetTargets()) == 0 {
			node.Ending = policyv1.Ending_ENDING_CUT
			continue
		}
		node.Steps = append(node.Steps, step)
	}
	return number, shown
}

func endingToProto(e explain.TreeEnding) policyv1.Ending {
	switch e {
	case explain.Recursion:
		return policyv1.Ending_ENDING_RECURSION
	case explain.Above:
		return policyv1.Ending_ENDING_ABOVE
	case explain.Cut:
		return policyv1.Ending_ENDING_CUT
	default:
		return policyv1.Ending_ENDING_UNSPECIFIED
	}
}

// originToProto returns nil for an element without a place in a text.
func originToProto(o explain.DeclarationOrigin) *policyv1.Origin {
	at := placeToProto(o.Place)
	if at == nil {
		return nil
	}
	return &policyv1.Origin{Place: at, Owner: sanitizeText(o.Owner)}
}

// truncateToLines returns the first lines of s, at most maxText bytes. whole reports whether they are all of s.
func truncateToLines(s string) (shown string, whole bool) {
	if len(s) <= maxText {
		return s, true
	}
	return s[:strings.LastIndexByte(s[:maxText], '\n')+1], false
}
