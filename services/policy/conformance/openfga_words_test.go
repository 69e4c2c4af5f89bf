package conformance

import (
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	"github.com/openfga/openfga/pkg/typesystem"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/openfga"
)

// plainModel returns the model of a policy without OpenFGA's checks: the names are inserted afterwards.
func plainModel(t *testing.T, typ, relation, action string) string {
	t.Helper()
	others := policy.Options{SubjectTypes: []string{"person"}}
	model, found := openfga.CompileDSL(valid(t, others, one("typename", "relationname", "actionname")), openfga.Options{})
	if found.HasErrors() {
		t.Fatal(found)
	}
	return strings.NewReplacer("typename", typ, "relationname", relation, "actionname", action).Replace(string(model))
}

// taken reports whether OpenFGA's parser and the library of its server accept a model.
func taken(t *testing.T, dsl string) bool {
	t.Helper()
	model := &openfgav1.AuthorizationModel{}
	out, err := transformer.TransformDSLToJSON(dsl)
	if err == nil {
		err = protojson.Unmarshal([]byte(out), model)
	}
	if err == nil {
		_, err = typesystem.NewAndValidate(t.Context(), model)
	}
	return err == nil
}

// TestReservedWordsEqualOpenFGA compares with the parser and the library of the server.
func TestReservedWordsEqualOpenFGA(t *testing.T) {
	t.Parallel()
	for _, word := range []string{
		"self", "this", "and", "or", "but", "not", "from", "with", "define", "relations", "relation", "condition", "in", "true", "false", "null",
		"type", "model", "module", "extend", "schema", "map", "list", "int", "string", "user", "any", "all",
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			theirs := true
			for _, names := range [][3]string{{word, "own", "get"}, {"foo", word, "get"}, {"foo", "own", word}} {
				theirs = taken(t, plainModel(t, names[0], names[1], names[2])) && theirs
			}
			for _, names := range [][3]string{{word, "own", "get"}, {"foo", word, "get"}, {"foo", "own", word}} {
				ours := !openfga.CheckModel(valid(t, policy.Options{}, one(names[0], names[1], names[2])), openfga.Options{}).HasErrors()
				if ours != theirs {
					t.Errorf("OpenFGA takes it: %v, we, in %v: %v", theirs, names, ours)
				}
			}
		})
	}
}
