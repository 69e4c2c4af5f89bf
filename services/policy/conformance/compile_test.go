package conformance

import (
	"testing"

	"github.com/authzed/spicedb/pkg/schema"
	"github.com/authzed/spicedb/pkg/schemadsl/compiler"
	"github.com/authzed/spicedb/pkg/schemadsl/input"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// compile compiles a schema and validates its types, as SpiceDB does before it accepts a schema.
func compile(t *testing.T, text string) (definitions int, err error) {
	t.Helper()
	compiled, err := compiler.Compile(compiler.InputSchema{Source: input.Source("schema"), SchemaString: text}, compiler.AllowUnprefixedObjectType())
	if err != nil {
		return 0, err
	}
	types := schema.NewTypeSystem(schema.ResolverForCompiledSchema(*compiled))
	for _, d := range compiled.ObjectDefinitions {
		if _, err := types.GetValidatedDefinition(t.Context(), d.GetName()); err != nil {
			return 0, err
		}
	}
	return len(compiled.ObjectDefinitions), nil
}

// valid returns the policy in the texts of files.
func valid(t *testing.T, o policy.Options, texts ...string) *policy.Policy {
	t.Helper()
	var files []syntax.File
	for i, text := range texts {
		files = append(files, syntax.File{Name: string(rune('p'+i)) + ".yaml", Content: []byte(text)})
	}
	p, found := check.Files(files, syntax.ParseLimits{}, o)
	if p == nil {
		t.Fatalf("%v in\n%s", found, texts)
	}
	return p
}
