package tuplesync

import (
	"fmt"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/tuple-sync/ledger/plan"
)

func TestModelsAreKeptWithinBounds(t *testing.T) {
	c := newModelCache(nil)
	for i := range 2 * maxModels {
		model, err := plan.NewModel(&openfgav1.AuthorizationModel{Id: fmt.Sprint(i), SchemaVersion: "1.1"})
		if err != nil {
			t.Fatal(err)
		}
		c.Put(model)
		if c.Put(model); len(c.kept.Keys()) > maxModels {
			t.Fatalf("%d models are kept", len(c.kept.Keys()))
		}
		if kept, err := c.Get(t.Context(), "store", model.ID()); err != nil || kept != model {
			t.Fatalf("kept is %v, %v", kept, err)
		}
	}
}
