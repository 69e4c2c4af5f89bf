package fga

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// ReadObjectTuples reads the tuples of one object.
func (c *Client) ReadObjectTuples(ctx context.Context, storeID, object string) ([]*openfgav1.Tuple, error) {
	var all []*openfgav1.Tuple
	for token := ""; ; {
		answer, err := c.api.Read(ctx, &openfgav1.ReadRequest{
			StoreId: storeID, PageSize: wrapperspb.Int32(pageSize), ContinuationToken: token,
			TupleKey: &openfgav1.ReadRequestTupleKey{Object: object},
		})
		if err != nil {
			return nil, fmt.Errorf("reading tuples of %s in OpenFGA store %s: %w", object, storeID, err)
		}
		all = append(all, answer.GetTuples()...)
		if token = answer.GetContinuationToken(); token == "" {
			return all, nil
		}
	}
}

// ReadChanges returns at most 100 changes after a token, the oldest first. Without a token it begins at since, or at
// the first change if since is zero. The returned token is for the next call. It is empty only if the store has never
// had a change.
func (c *Client) ReadChanges(ctx context.Context, storeID, token string, since time.Time) ([]*openfgav1.TupleChange, string, error) {
	request := &openfgav1.ReadChangesRequest{StoreId: storeID, PageSize: wrapperspb.Int32(pageSize), ContinuationToken: token}
	if token == "" && !since.IsZero() {
		request.StartTime = timestamppb.New(since)
	}
	answer, err := c.api.ReadChanges(ctx, request)
	if err != nil {
		return nil, "", fmt.Errorf("reading changes of OpenFGA store %s: %w", storeID, err)
	}
	return answer.GetChanges(), answer.GetContinuationToken(), nil
}

// ReadTypeTuples returns the tuples of a type's objects for which wanted returns true. It reads all changes of
// the type, because OpenFGA cannot list the objects of a type.
func (c *Client) ReadTypeTuples(ctx context.Context, storeID, typ string, wanted func(*openfgav1.TupleKey) bool) ([]*openfgav1.TupleKey, error) {
	type identity struct{ object, relation, user string }
	held := map[identity]*openfgav1.TupleKey{}
	for token := ""; ; {
		answer, err := c.api.ReadChanges(ctx, &openfgav1.ReadChangesRequest{
			StoreId: storeID, Type: typ, PageSize: wrapperspb.Int32(pageSize), ContinuationToken: token,
		})
		if err != nil {
			return nil, fmt.Errorf("reading changes of type %s in OpenFGA store %s: %w", typ, storeID, err)
		}
		for _, change := range answer.GetChanges() {
			key := change.GetTupleKey()
			id := identity{key.GetObject(), key.GetRelation(), key.GetUser()}
			if delete(held, id); change.GetOperation() == openfgav1.TupleOperation_TUPLE_OPERATION_WRITE && wanted(key) {
				held[id] = key
			}
		}
		if token = answer.GetContinuationToken(); len(answer.GetChanges()) == 0 || token == "" {
			return slices.SortedFunc(maps.Values(held), func(a, b *openfgav1.TupleKey) int { return strings.Compare(a.String(), b.String()) }), nil
		}
	}
}
