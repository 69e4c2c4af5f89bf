package conformance

import (
	"context"
	"slices"
	"strings"
	"testing"

	authzed "github.com/authzed/authzed-go/proto/authzed/api/v1"
	"github.com/authzed/spicedb/pkg/development"
	developer "github.com/authzed/spicedb/pkg/proto/developer/v1"
)

// spiceDBServer is an in-memory SpiceDB server with a schema.
type spiceDBServer struct {
	client authzed.PermissionsServiceClient
}

func newSpiceDB(t *testing.T, schema []byte) spiceDBServer {
	t.Helper()
	empty, refused, err := development.NewDevContext(t.Context(), &developer.RequestContext{})
	if err != nil || refused != nil {
		t.Fatal(err, refused)
	}
	t.Cleanup(empty.Dispose)
	conn, stop, err := empty.RunV1InMemoryService()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if _, err := authzed.NewSchemaServiceClient(conn).WriteSchema(t.Context(), &authzed.WriteSchemaRequest{Schema: string(schema)}); err != nil {
		t.Fatalf("%v in\n%s", err, schema)
	}
	return spiceDBServer{authzed.NewPermissionsServiceClient(conn)}
}

func (s spiceDBServer) write(ctx context.Context, facts ...relationshipTuple) error {
	const most = 50
	for some := range slices.Chunk(facts, most) {
		var updates []*authzed.RelationshipUpdate
		for _, f := range some {
			updates = append(updates, &authzed.RelationshipUpdate{
				Operation:    authzed.RelationshipUpdate_OPERATION_CREATE,
				Relationship: &authzed.Relationship{Resource: reference(f.Object), Relation: f.Relation, Subject: subject(f.User)},
			})
		}
		if _, err := s.client.WriteRelationships(ctx, &authzed.WriteRelationshipsRequest{Updates: updates}); err != nil {
			return err
		}
	}
	return nil
}

func (s spiceDBServer) allowed(ctx context.Context, question relationshipTuple) (bool, error) {
	answer, err := s.client.CheckPermission(ctx, &authzed.CheckPermissionRequest{
		Consistency: &authzed.Consistency{Requirement: &authzed.Consistency_FullyConsistent{FullyConsistent: true}},
		Resource:    reference(question.Object), Permission: question.Relation, Subject: subject(question.User),
	})
	return answer.GetPermissionship() == authzed.CheckPermissionResponse_PERMISSIONSHIP_HAS_PERMISSION, err
}

func reference(object string) *authzed.ObjectReference {
	typ, id, _ := strings.Cut(object, ":")
	return &authzed.ObjectReference{ObjectType: "infratographer/" + typ, ObjectId: id}
}

func subject(user string) *authzed.SubjectReference {
	object, relation, _ := strings.Cut(user, "#")
	return &authzed.SubjectReference{Object: reference(object), OptionalRelation: relation}
}
