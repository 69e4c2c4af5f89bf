package fga

import (
	"context"
	"fmt"
	"iter"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// ReadTuples yields all tuples of a store, page by page. An error ends the sequence. Tuples that change during the
// read may be missing. An unknown store yields no tuples: see [Client.GetStore].
func (c *Client) ReadTuples(ctx context.Context, storeID string) iter.Seq2[*openfgav1.Tuple, error] {
	return func(yield func(*openfgav1.Tuple, error) bool) {
		for token := ""; ; {
			page, next, err := c.ReadTuplePage(ctx, storeID, pageSize, token)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, t := range page {
				if !yield(t, nil) {
					return
				}
			}
			if token = next; token == "" {
				return
			}
		}
	}
}

// ReadTuplePage returns one page of a store's tuples, at most 100, and the token for the next page. Use a token only
// for its own store; the server does not check this.
func (c *Client) ReadTuplePage(ctx context.Context, storeID string, size int32, token string) (page []*openfgav1.Tuple, next string, err error) {
	if !isValidID(storeID) {
		return nil, "", nil
	}
	answer, err := c.api.Read(ctx, &openfgav1.ReadRequest{
		StoreId: storeID, PageSize: wrapperspb.Int32(min(size, pageSize)), ContinuationToken: token,
	})
	if err != nil {
		return nil, "", fmt.Errorf("reading tuples of OpenFGA store %s: %w", storeID, err)
	}
	return answer.GetTuples(), answer.GetContinuationToken(), nil
}

// ReadTuple returns the tuple with the object, relation and user of key. It ignores the condition.
func (c *Client) ReadTuple(ctx context.Context, storeID string, key *openfgav1.TupleKey) (*openfgav1.Tuple, bool, error) {
	page, err := c.api.Read(ctx, &openfgav1.ReadRequest{
		StoreId: storeID, PageSize: wrapperspb.Int32(1),
		TupleKey: &openfgav1.ReadRequestTupleKey{Object: key.GetObject(), Relation: key.GetRelation(), User: key.GetUser()},
	})
	if err != nil {
		return nil, false, fmt.Errorf("reading tuple %s of OpenFGA store %s: %w", tupleIdentityOf(key), storeID, err)
	}
	if len(page.GetTuples()) == 0 {
		return nil, false, nil
	}
	return page.GetTuples()[0], true, nil
}

// ReadRelationTuples returns at most limit tuples of an object's relation; with a user, only the tuple of that user. It
// bypasses the caches of OpenFGA. more reports that tuples were left out.
func (c *Client) ReadRelationTuples(
	ctx context.Context, storeID string, filter *openfgav1.ReadRequestTupleKey, limit int,
) (tuples []*openfgav1.Tuple, more bool, err error) {
	for token := ""; ; {
		page, err := c.api.Read(ctx, &openfgav1.ReadRequest{
			StoreId: storeID, TupleKey: filter, PageSize: wrapperspb.Int32(pageSize), ContinuationToken: token,
			Consistency: openfgav1.ConsistencyPreference_HIGHER_CONSISTENCY,
		})
		if err != nil {
			return nil, false, fmt.Errorf("reading tuples of %s#%s in OpenFGA store %s: %w", filter.GetObject(), filter.GetRelation(), storeID, err)
		}
		tuples = append(tuples, page.GetTuples()...)
		if token = page.GetContinuationToken(); token == "" || len(tuples) >= limit {
			return tuples[:min(limit, len(tuples))], token != "" || len(tuples) > limit, nil
		}
	}
}

// Check sends the request to OpenFGA unchanged.
func (c *Client) Check(ctx context.Context, r *openfgav1.CheckRequest) (*openfgav1.CheckResponse, error) {
	return callWithStoreError(ctx, c, "check in", r, c.api.Check)
}

// ListObjects sends the request to OpenFGA unchanged.
func (c *Client) ListObjects(ctx context.Context, r *openfgav1.ListObjectsRequest) (*openfgav1.ListObjectsResponse, error) {
	return callWithStoreError(ctx, c, "listing objects of", r, c.api.ListObjects)
}

// ListUsers sends the request to OpenFGA unchanged.
func (c *Client) ListUsers(ctx context.Context, r *openfgav1.ListUsersRequest) (*openfgav1.ListUsersResponse, error) {
	return callWithStoreError(ctx, c, "listing users of", r, c.api.ListUsers)
}

// Expand sends the request to OpenFGA unchanged.
func (c *Client) Expand(ctx context.Context, r *openfgav1.ExpandRequest) (*openfgav1.ExpandResponse, error) {
	return callWithStoreError(ctx, c, "expanding in", r, c.api.Expand)
}

// callWithStoreError calls a method and adds the store to its error.
func callWithStoreError[Question interface{ GetStoreId() string }, Answer any](
	ctx context.Context, c *Client, doing string, q Question, method func(context.Context, Question, ...grpc.CallOption) (Answer, error),
) (Answer, error) {
	answer, err := method(ctx, q)
	if err != nil {
		err = fmt.Errorf("%s OpenFGA store %s: %w", doing, q.GetStoreId(), c.replaceIfStoreNotFound(ctx, q.GetStoreId(), err))
	}
	return answer, err
}
