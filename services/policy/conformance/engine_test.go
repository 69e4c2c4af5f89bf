package conformance

import (
	"context"
	"os"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/spicedb"
)

// engine is a server with a compiled policy.
type engine interface {
	write(ctx context.Context, facts ...relationshipTuple) error
	// allowed reports whether a user may take an action; an error means no answer.
	allowed(ctx context.Context, question relationshipTuple) (bool, error)
}

// TestTheEnginesDecideExample also requires that the engines accept valid tuples and reject others.
func TestTheEnginesDecideExample(t *testing.T) {
	text, err := os.ReadFile("../testdata/loadbalancer/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := valid(t, policy.Options{}, string(text))
	schema, _ := spicedb.CompileSchema(p, spicedb.Options{})
	engines := map[string]engine{"SpiceDB": newSpiceDB(t, schema)}
	client := openFGA(t)
	for _, form := range forms() {
		engines["OpenFGA, "+form] = newOpenFGA(t, client, modelOf(t, p, form))
	}
	for name, e := range engines {
		t.Run(name, func(t *testing.T) {
			if err := e.write(t.Context(), facts()...); err != nil {
				t.Fatal(err)
			}
			for _, f := range impossible() {
				if err := e.write(t.Context(), f); err == nil {
					t.Errorf("%v was written", f)
				}
			}
			for _, d := range decisions() {
				if allowed, err := e.allowed(t.Context(), d.relationshipTuple); err != nil || allowed != d.Allowed {
					t.Errorf("%v: %v, want %v (%v)", d.relationshipTuple, allowed, d.Allowed, err)
				}
			}
		})
	}
}
