//go:build !race

package policy

import (
	"testing"

	"connectrpc.com/connect"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
)

// One goroutine draws thousands of types. The race detector could find nothing, and would take ten times as long.
func TestGraphPolicyIsBounded(t *testing.T) {
	tests := map[string]struct {
		format  policyv1.Format
		content string
		words   string
	}{
		"types":   {policyv1.Format_FORMAT_SVG, bindAllActionsToAllTypes(201, 1), "201 types"},
		"bytes":   {policyv1.Format_FORMAT_SVG, policyOfManyRelations(2700), "of at most 4194304"},
		"Mermaid": {policyv1.Format_FORMAT_MERMAID, policyOfManyRelations(600), "Mermaid"},
		"DOT":     {policyv1.Format_FORMAT_DOT, policyOfManyRelations(6000), "Graphviz"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := newServer(t).GraphPolicy(t.Context(), &policyv1.GraphPolicyRequest{Policy: policyOfFile(test.content), Format: test.format})
			expectRefused(t, err, connect.CodeInvalidArgument, test.words)
			expectRefused(t, err, connect.CodeInvalidArgument, "filter by type, action or owner")
		})
	}
}
