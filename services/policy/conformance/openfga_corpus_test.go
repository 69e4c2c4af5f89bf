package conformance

import (
	"maps"
	"slices"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/policytest"
	"github.com/entail-dev/entail/services/policy/openfga"
)

func TestOpenFGAAcceptsCheckedPolicies(t *testing.T) {
	t.Parallel()
	refused := testOpenFGACorpus(t, 1000)
	if refused == 0 || refused > 500 {
		t.Errorf("%d policies are not for OpenFGA", refused)
	}
}

// testOpenFGACorpus compiles a number of generated policies for OpenFGA, and returns the number of rejected ones.
func testOpenFGACorpus(t *testing.T, policies uint64) int {
	t.Helper()
	refused := 0
	for seed := range policytest.SeedRange(t, policies) {
		p := valid(t, policy.Options{}, policytest.GeneratePolicy(seed)...)
		if openfga.CheckModel(p, openfga.Options{}).HasErrors() {
			refused++
			continue
		}
		model := validModel(t, p)
		// This parser is slow, and must not limit the number of policies.
		if seed%50 == 0 {
			sameModel(t, p, model)
		}
		if t.Failed() {
			t.Fatalf("the policy of seed %d is\n%s", seed, policytest.GeneratePolicy(seed))
		}
	}
	return refused
}

// validModel reads and validates the JSON of a policy with OpenFGA's own library.
func validModel(t *testing.T, p *policy.Policy) *openfgav1.AuthorizationModel {
	t.Helper()
	model := modelOf(t, p, "JSON")
	if _, err := typesystem.NewAndValidate(t.Context(), model); err != nil {
		t.Errorf("%v in\n%s", err, protojson.Format(model))
	}
	measured(t, "the model", stored(model), func(o openfga.Options) policy.Diagnostics { return openfga.CheckModel(p, o) })
	return model
}

// measured requires that a limit equal to OpenFGA's size is just sufficient.
func measured(t *testing.T, what string, size int, check func(openfga.Options) policy.Diagnostics) {
	t.Helper()
	if found := check(openfga.Options{MaxBytes: size}); found.HasErrors() {
		t.Errorf("%s of %d bytes is too large for as many: %v", what, size, found)
	}
	if found := check(openfga.Options{MaxBytes: size - 1}); !found.HasErrors() {
		t.Errorf("%s of %d bytes is not too large for one less", what, size)
	}
}

// stored returns the size of a model with the ID that the server adds.
func stored(model *openfgav1.AuthorizationModel) int {
	clone := proto.Clone(model).(*openfgav1.AuthorizationModel)
	clone.Id = "01HZX3V8Y2QK4J6N8P0R2T4V6W"
	return proto.Size(clone)
}

// sameModel compares the models of DSL and modules with the model of the JSON.
func sameModel(t *testing.T, p *policy.Policy, model *openfgav1.AuthorizationModel) {
	t.Helper()
	parsed := modelOf(t, p, "DSL")
	if !proto.Equal(normal(parsed), normal(model)) {
		t.Errorf("DSL and JSON differ:\n%s\n%s", protojson.Format(parsed), protojson.Format(model))
	}
	merged := modelOf(t, p, "modules")
	measured(t, "the modules", stored(merged), func(o openfga.Options) policy.Diagnostics {
		_, found := openfga.CompileModules(p, o)
		return found
	})
	if _, err := typesystem.NewAndValidate(t.Context(), merged); err != nil {
		t.Errorf("%v in modules", err)
	}
	merged = normal(merged)
	merged.SchemaVersion = model.GetSchemaVersion()
	if !proto.Equal(merged, normal(model)) {
		t.Errorf("modules and JSON differ:\n%s\n%s", protojson.Format(merged), protojson.Format(model))
	}
}

// normal returns a canonical form of a model: sorted types, no empty parts, no sources.
func normal(model *openfgav1.AuthorizationModel) *openfgav1.AuthorizationModel {
	out := &openfgav1.AuthorizationModel{SchemaVersion: model.GetSchemaVersion()}
	byName := map[string]*openfgav1.TypeDefinition{}
	for _, t := range model.GetTypeDefinitions() {
		clone := proto.Clone(t).(*openfgav1.TypeDefinition)
		if clone.GetMetadata() != nil {
			clone.Metadata.Module, clone.Metadata.SourceInfo = "", nil
			for _, r := range clone.GetMetadata().GetRelations() {
				r.Module, r.SourceInfo = "", nil
			}
			if len(clone.GetMetadata().GetRelations()) == 0 {
				clone.Metadata = nil
			}
		}
		byName[t.GetType()] = clone
	}
	for _, name := range sortedKeys(byName) {
		out.TypeDefinitions = append(out.TypeDefinitions, byName[name])
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
