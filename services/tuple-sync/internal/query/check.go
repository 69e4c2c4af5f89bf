package query

import (
	"context"
	"slices"
	"strings"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	fgatuple "github.com/openfga/openfga/pkg/tuple"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
)

// Check returns OpenFGA's answer whether a user has a relation to an object.
func (s *Server) Check(ctx context.Context, r *tuplev1.CheckRequest) (*tuplev1.CheckResponse, error) {
	if err := s.awaitObject(ctx, r.GetStore(), r.GetAfter()); err != nil {
		return nil, err
	}
	status, model, err := s.storeWithModel(ctx, r.GetStore())
	if err != nil {
		return nil, err
	}
	if err := checkQuestionNames(model, r); err != nil {
		return nil, err
	}
	answer, err := s.cfg.OpenFGA.Check(ctx, &openfgav1.CheckRequest{
		StoreId: status.StoreID, AuthorizationModelId: status.AuthorizationModelID, Context: r.GetContext(),
		TupleKey:         &openfgav1.CheckRequestTupleKey{Object: r.GetKey().GetObject(), Relation: r.GetKey().GetRelation(), User: r.GetKey().GetUser()},
		ContextualTuples: contextualTuples(r.GetContextualTuples()), Consistency: toConsistency(r),
	})
	if err != nil {
		return nil, rpcError(err)
	}
	return &tuplev1.CheckResponse{Allowed: answer.GetAllowed(), StoreId: status.StoreID, AuthorizationModelId: status.AuthorizationModelID}, nil
}

// ListObjects returns the objects of a type to which a user has a relation, by OpenFGA.
func (s *Server) ListObjects(ctx context.Context, r *tuplev1.ListObjectsRequest) (*tuplev1.ListObjectsResponse, error) {
	if err := s.awaitObject(ctx, r.GetStore(), r.GetAfter()); err != nil {
		return nil, err
	}
	status, model, err := s.storeWithModel(ctx, r.GetStore())
	if err != nil {
		return nil, err
	}
	if err := checkListObjectsNames(model, r); err != nil {
		return nil, err
	}
	started := time.Now()
	answer, err := s.cfg.OpenFGA.ListObjects(ctx, &openfgav1.ListObjectsRequest{
		StoreId: status.StoreID, AuthorizationModelId: status.AuthorizationModelID,
		Type: r.GetType(), Relation: r.GetRelation(), User: r.GetUser(), Context: r.GetContext(),
		ContextualTuples: contextualTuples(r.GetContextualTuples()), Consistency: toConsistency(r),
	})
	if err != nil {
		return nil, rpcError(err)
	}
	return &tuplev1.ListObjectsResponse{
		Objects: answer.GetObjects(), Truncated: s.cfg.ListLimits.mayHaveCut(len(answer.GetObjects()), time.Since(started)),
	}, nil
}

// ListUsers returns the users of a type that have a relation to an object, by OpenFGA.
func (s *Server) ListUsers(ctx context.Context, r *tuplev1.ListUsersRequest) (*tuplev1.ListUsersResponse, error) {
	if err := s.awaitObject(ctx, r.GetStore(), r.GetAfter()); err != nil {
		return nil, err
	}
	status, model, err := s.storeWithModel(ctx, r.GetStore())
	if err != nil {
		return nil, err
	}
	if err := checkListUsersNames(model, r); err != nil {
		return nil, err
	}
	typ, id := fgatuple.SplitObject(r.GetObject())
	userType, userRelation, _ := strings.Cut(r.GetUserType(), "#")
	started := time.Now()
	answer, err := s.cfg.OpenFGA.ListUsers(ctx, &openfgav1.ListUsersRequest{
		StoreId: status.StoreID, AuthorizationModelId: status.AuthorizationModelID,
		Object: &openfgav1.Object{Type: typ, Id: id}, Relation: r.GetRelation(), Context: r.GetContext(),
		UserFilters:      []*openfgav1.UserTypeFilter{{Type: userType, Relation: userRelation}},
		ContextualTuples: contextualTuples(r.GetContextualTuples()).GetTupleKeys(), Consistency: toConsistency(r),
	})
	if err != nil {
		return nil, rpcError(err)
	}
	response := &tuplev1.ListUsersResponse{Truncated: s.cfg.ListLimits.mayHaveCut(len(answer.GetUsers()), time.Since(started))}
	for _, u := range answer.GetUsers() {
		response.Users = append(response.Users, fgatuple.UserProtoToString(u))
	}
	slices.Sort(response.GetUsers())
	return response, nil
}

// ListLimits holds the limits of OpenFGA for lists. OpenFGA ends a list at a limit without an error. The values must not
// exceed those of the server.
type ListLimits struct {
	Deadline time.Duration
	Results  int
}

// mayHaveCut reports whether OpenFGA may have cut a list at a limit.
func (l ListLimits) mayHaveCut(results int, took time.Duration) bool {
	return results >= l.Results || took >= l.Deadline
}

func contextualTuples(keys []*tuplev1.TupleKey) *openfgav1.ContextualTupleKeys {
	tuples := &openfgav1.ContextualTupleKeys{}
	for _, t := range keys {
		key := &openfgav1.TupleKey{Object: t.GetObject(), Relation: t.GetRelation(), User: t.GetUser()}
		if c := t.GetCondition(); c != nil {
			key.Condition = &openfgav1.RelationshipCondition{Name: c.GetName(), Context: c.GetContext()}
		}
		tuples.TupleKeys = append(tuples.TupleKeys, key)
	}
	return tuples
}

// toConsistency returns the consistency of a question. A question that waits for an object bypasses the caches of OpenFGA,
// because they may lack the object.
func toConsistency(r interface {
	GetHigherConsistency() bool
	GetAfter() string
},
) openfgav1.ConsistencyPreference {
	if r.GetHigherConsistency() || r.GetAfter() != "" {
		return openfgav1.ConsistencyPreference_HIGHER_CONSISTENCY
	}
	return openfgav1.ConsistencyPreference_UNSPECIFIED
}
