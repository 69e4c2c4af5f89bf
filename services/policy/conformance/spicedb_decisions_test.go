package conformance

import (
	"os"
	"strings"
	"testing"

	"github.com/authzed/spicedb/pkg/development"
	core "github.com/authzed/spicedb/pkg/proto/core/v1"
	developer "github.com/authzed/spicedb/pkg/proto/developer/v1"
	dispatch "github.com/authzed/spicedb/pkg/proto/dispatch/v1"
	"github.com/authzed/spicedb/pkg/tuple"
)

func object(t *testing.T, text string) tuple.ObjectAndRelation {
	t.Helper()
	text, relation, _ := strings.Cut(text, "#")
	typ, id, _ := strings.Cut(text, ":")
	if relation == "" {
		relation = tuple.Ellipsis
	}
	return tuple.ObjectAndRelation{ObjectType: "infratographer/" + typ, ObjectID: id, Relation: relation}
}

func relationships(t *testing.T, tuples ...fact) []*core.RelationTuple {
	t.Helper()
	var all []*core.RelationTuple
	for _, r := range tuples {
		on := object(t, r.Object+"#"+r.Relation)
		all = append(all, tuple.Relationship{RelationshipReference: tuple.RelationshipReference{Resource: on, Subject: object(t, r.User)}}.ToCoreTuple())
	}
	return all
}

// TestSpiceDBDecidesAsTheExampleSays runs its evaluator on its store in memory, without a server.
func TestSpiceDBDecidesAsTheExampleSays(t *testing.T) {
	t.Parallel()
	schema, err := os.ReadFile("../testdata/loadbalancer/schema.zed")
	if err != nil {
		t.Fatal(err)
	}
	world, refused, err := development.NewDevContext(t.Context(), &developer.RequestContext{
		Schema: string(schema), Relationships: relationships(t, facts()...),
	})
	if err != nil || refused != nil {
		t.Fatal(err, refused)
	}
	defer world.Dispose()
	for _, d := range decisions() {
		answer, err := development.RunCheck(world, object(t, d.Object+"#"+d.Relation), object(t, d.User), nil)
		if err != nil {
			t.Fatal(err)
		}
		if allowed := answer.Permissionship == dispatch.ResourceCheckResult_MEMBER; allowed != d.Allowed {
			t.Errorf("%v: %v, want %v", d.fact, allowed, d.Allowed)
		}
	}
	for _, unwanted := range impossible() {
		world, refused, err := development.NewDevContext(t.Context(), &developer.RequestContext{
			Schema: string(schema), Relationships: relationships(t, unwanted),
		})
		if err == nil && refused == nil {
			world.Dispose()
			t.Errorf("%v was written", unwanted)
		}
	}
}
