package conformance

import (
	"os"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/openfga"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// models returns the model of the example in every form.
func models(t *testing.T) map[string]*openfgav1.AuthorizationModel {
	t.Helper()
	text, err := os.ReadFile("../testdata/loadbalancer/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, found := check.Files([]syntax.File{{Content: text}}, syntax.Limits{}, policy.Options{})
	if p == nil {
		t.Fatal(found)
	}
	all := map[string]*openfgav1.AuthorizationModel{"JSON": {}}
	out, _ := openfga.JSON(p, openfga.Options{})
	if err := protojson.Unmarshal(out, all["JSON"]); err != nil {
		t.Fatal(err)
	}
	out, _ = openfga.DSL(p, openfga.Options{})
	if all["DSL"], err = transformer.TransformDSLToProto(string(out)); err != nil {
		t.Fatal(err)
	}
	modules, _ := openfga.Modules(p, openfga.Options{})
	var files []transformer.ModuleFile
	for _, m := range modules {
		files = append(files, transformer.ModuleFile{Name: m.File, Contents: string(m.Content)})
	}
	if all["modules"], err = transformer.TransformModuleFilesToModel(files, "1.2"); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestOpenFGADecidesAsTheExampleSays(t *testing.T) {
	client := testbed.OpenFGA(t).Client(t)
	for form, model := range models(t) {
		t.Run(form, func(t *testing.T) {
			store, err := client.CreateStore(t.Context(), "example-"+form)
			if err != nil {
				t.Fatal(err)
			}
			id, err := client.WriteModel(t.Context(), store, model)
			if err != nil {
				t.Fatal(err)
			}
			write := func(tuples ...fact) error {
				var keys []*openfgav1.TupleKey
				for _, tuple := range tuples {
					keys = append(keys, &openfgav1.TupleKey{Object: tuple.Object, Relation: tuple.Relation, User: tuple.User})
				}
				return client.Write(t.Context(), store, id, keys, nil)
			}
			if err := write(facts()...); err != nil {
				t.Fatal(err)
			}
			for _, tuple := range impossible() {
				if err := write(tuple); err == nil {
					t.Errorf("%v was written", tuple)
				}
			}
			for _, d := range decisions() {
				decide(t, client, store, d)
			}
		})
	}
}

func decide(t *testing.T, client *fga.Client, store string, d decision) {
	t.Helper()
	answer, err := client.Check(t.Context(), &openfgav1.CheckRequest{
		StoreId: store, TupleKey: &openfgav1.CheckRequestTupleKey{Object: d.Object, Relation: d.Relation, User: d.User},
	})
	if err != nil {
		t.Fatal(err)
	}
	if answer.GetAllowed() != d.Allowed {
		t.Errorf("%v: %v, want %v", d.fact, answer.GetAllowed(), d.Allowed)
	}
}
