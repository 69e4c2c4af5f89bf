package iam

import (
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"
	"google.golang.org/protobuf/proto"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam/world"
	"github.com/entail-dev/entail/services/internal/seeds"
)

func modelOf(r *Registry) *openfgav1.AuthorizationModel {
	return &openfgav1.AuthorizationModel{SchemaVersion: typesystem.SchemaVersion1_2, TypeDefinitions: r.TypeDefinitions()}
}

func bytesOf(t *testing.T, r *Registry) string {
	t.Helper()
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(modelOf(r))
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func TestTypeDefinitionsAreValidAndIndependentOfOrder(t *testing.T) {
	for seed := range seeds.SeedRange(t, 50) {
		w := world.NewRandom(seed)
		first := bytesOf(t, NewRegistry(w.Resources))
		w.Random.Shuffle(len(w.Resources), func(i, j int) { w.Resources[i], w.Resources[j] = w.Resources[j], w.Resources[i] })
		if bytesOf(t, NewRegistry(w.Resources)) != first {
			t.Errorf("world %d: the model depends on the order", seed)
		}
		if _, err := typesystem.NewAndValidate(t.Context(), modelOf(NewRegistry(w.Resources))); err != nil {
			t.Errorf("world %d: %v", seed, err)
		}
	}
}

func TestTypeDefinitionsWithoutKindsAreValid(t *testing.T) {
	if _, err := typesystem.NewAndValidate(t.Context(), modelOf(NewRegistry(nil))); err != nil {
		t.Error(err)
	}
}

func TestIsIAMTypeCoversModelTypes(t *testing.T) {
	for _, typ := range NewRegistry(world.NewRandom(1).Resources).TypeDefinitions() {
		if !IsIAMType(typ.GetType()) {
			t.Errorf("IsOwnType(%s): got false", typ.GetType())
		}
	}
	if IsIAMType("workspace") {
		t.Error("a type of a module in DSL is IAM's")
	}
}

// The largest published set of ProtectedResources has thirty-three kinds.
func TestModelOfFiftyKindsFitsDefaultLimits(t *testing.T) {
	resources := []*iamv1alpha1.ProtectedResource{
		resource(1, "resourcemanager.miloapis.com/Organization", "organizations"),
		resource(2, "resourcemanager.miloapis.com/Project", "projects", "resourcemanager.miloapis.com/Organization"),
	}
	for i := range 100 {
		name := string(rune('a'+i/26)) + string(rune('a'+i%26))
		resources = append(resources, permitting(resource(3+i, "compute.miloapis.com/Kind"+name, "kinds"+name, "resourcemanager.miloapis.com/Project"),
			"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "bind"))
	}
	fit := len(RegistryWithinBudget(resources, ModelBudget{100, 256 << 10}).Kinds())
	t.Logf("%d kinds of ten verbs fit", fit)
	if fit < 50 {
		t.Errorf("only %d kinds fit", fit)
	}
}
