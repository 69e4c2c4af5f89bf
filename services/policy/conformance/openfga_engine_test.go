package conformance

import (
	"context"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/entail-dev/entail/services/internal/devserver/embedded"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/openfga"
)

// openFGAStore is an OpenFGA store with a model.
type openFGAStore struct {
	client       *fga.Client
	store, model string
}

// openFGA starts a server in memory.
func openFGA(t *testing.T) *fga.Client {
	t.Helper()
	server, err := embedded.StartOpenFGA(embedded.OpenFGAConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	client, err := fga.Dial(fga.Config{Target: server.GRPCTarget()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func newOpenFGA(t *testing.T, client *fga.Client, model *openfgav1.AuthorizationModel) openFGAStore {
	t.Helper()
	store, err := client.CreateStore(t.Context(), "conformance")
	if err != nil {
		t.Fatal(err)
	}
	id, err := client.WriteModel(t.Context(), store, model)
	if err != nil {
		t.Fatalf("%v in\n%s", err, protojson.Format(model))
	}
	return openFGAStore{client, store, id}
}

func (o openFGAStore) write(ctx context.Context, facts ...relationshipTuple) error {
	var keys []*openfgav1.TupleKey
	for _, f := range facts {
		keys = append(keys, &openfgav1.TupleKey{Object: f.Object, Relation: f.Relation, User: f.User})
	}
	return o.client.Write(ctx, o.store, o.model, keys, nil)
}

func (o openFGAStore) allowed(ctx context.Context, question relationshipTuple) (bool, error) {
	answer, err := o.client.Check(ctx, &openfgav1.CheckRequest{
		StoreId: o.store, TupleKey: &openfgav1.CheckRequestTupleKey{Object: question.Object, Relation: question.Relation, User: question.User},
	})
	return answer.GetAllowed(), err
}

// forms returns the forms of a compiled model.
func forms() []string { return []string{"JSON", "DSL", "modules"} }

// modelOf compiles a policy to one of the forms, and reads that with OpenFGA's tools.
func modelOf(t *testing.T, p *policy.Policy, form string) *openfgav1.AuthorizationModel {
	t.Helper()
	var (
		out     []byte
		modules []openfga.Module
		found   policy.Diagnostics
		err     error
	)
	model := &openfgav1.AuthorizationModel{}
	switch form {
	case "JSON":
		out, found = openfga.CompileJSON(p, openfga.Options{})
		err = protojson.Unmarshal(out, model)
	case "DSL":
		out, found = openfga.CompileDSL(p, openfga.Options{})
		model, err = transformer.TransformDSLToProto(string(out))
	default:
		modules, found = openfga.CompileModules(p, openfga.Options{})
		var files []transformer.ModuleFile
		for _, m := range modules {
			files = append(files, transformer.ModuleFile{Name: m.File, Contents: string(m.Content)})
		}
		model, err = transformer.TransformModuleFilesToModel(files, "1.2")
	}
	if err != nil || found.HasErrors() {
		t.Fatalf("%v, %v in the %s:\n%s%+v", err, found, form, out, modules)
	}
	return model
}
