package fga

import (
	"context"
	"errors"
	"fmt"
	"slices"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/grpc/codes"
)

// Write adds the tuples of add to a store, then removes those of remove. It uses as many calls as necessary and is
// idempotent. A tuple in both lists is kept.
//
// A stored tuple with another condition is replaced; it is missing for a moment. The error is [ErrInvalidTuple] if two
// tuples in add differ only in their condition, or if the server refuses a tuple under the model. An empty modelID
// means the latest model. Tuples of earlier calls remain written after an error.
//
// Removing tuples from an unknown store succeeds. Adding tuples to it returns [ErrStoreNotFound], unless its model
// still exists (see the package documentation).
func (c *Client) Write(ctx context.Context, storeID, modelID string, add, remove []*openfgav1.TupleKey) error {
	wanted, err := newTupleSet(add)
	if err == nil && !isValidID(storeID) {
		if len(add) == 0 {
			return nil
		}
		err = ErrStoreNotFound
	}
	if err != nil {
		return fmt.Errorf("writing tuples to OpenFGA store %.100s: %w", storeID, err)
	}
	for chunk := range slices.Chunk(wanted.list, c.maxTuples) {
		err := retryInHalves(ctx, chunk, func(part []*openfgav1.TupleKey) error { return c.writeTupleChunk(ctx, storeID, modelID, part) })
		if err != nil {
			return fmt.Errorf("writing tuples to OpenFGA store %s: %w", storeID, c.replaceIfStoreNotFound(ctx, storeID, withSentinel(err, ErrInvalidTuple)))
		}
	}
	for chunk := range slices.Chunk(wanted.removableKeys(remove), c.maxTuples) {
		err := retryInHalves(ctx, chunk, func(part []*openfgav1.TupleKeyWithoutCondition) error { return c.deleteTupleChunk(ctx, storeID, part) })
		if modelID == "" && errors.Is(err, ErrModelNotFound) {
			return nil // A store without a model has no tuples.
		}
		if err != nil {
			return fmt.Errorf("deleting tuples from OpenFGA store %s: %w", storeID, withSentinel(err, ErrInvalidTuple))
		}
	}
	return nil
}

// retryInHalves splits a chunk in two if the server did not finish it in time, because the same chunk would time out
// again.
func retryInHalves[T any](ctx context.Context, chunk []T, write func([]T) error) error {
	err := write(chunk)
	late := slices.Contains([]codes.Code{cancelled, codes.Canceled, codes.DeadlineExceeded}, serverCodeOf(err))
	if !late || len(chunk) < 2 || ctx.Err() != nil {
		return err
	}
	half := len(chunk) / 2
	if err := retryInHalves(ctx, chunk[:half], write); err != nil {
		return err
	}
	return retryInHalves(ctx, chunk[half:], write)
}

// writeTupleChunk writes one chunk. OpenFGA aborts the whole chunk if a stored tuple has another condition, or if
// another client wrote one of the tuples at the same time. In this case writeTupleChunk removes the tuples with another
// condition and tries once more.
func (c *Client) writeTupleChunk(ctx context.Context, storeID, modelID string, chunk []*openfgav1.TupleKey) error {
	request := &openfgav1.WriteRequest{
		StoreId: storeID, AuthorizationModelId: modelID,
		Writes: &openfgav1.WriteRequestWrites{TupleKeys: chunk, OnDuplicate: "ignore"},
	}
	_, err := c.api.Write(ctx, request)
	if serverCodeOf(err) != codes.Aborted {
		return err
	}
	var stale []*openfgav1.TupleKeyWithoutCondition
	for _, t := range chunk {
		found, ok, err := c.ReadTuple(ctx, storeID, t)
		if err != nil {
			return err
		}
		if ok && !EqualConditions(found.GetKey(), t) {
			stale = append(stale, tupleIdentityOf(t).tupleKey())
		}
	}
	if len(stale) > 0 {
		if err := c.deleteTupleChunk(ctx, storeID, stale); err != nil {
			return err
		}
	}
	_, err = c.api.Write(ctx, request)
	return err
}

// deleteTupleChunk deletes one chunk.
func (c *Client) deleteTupleChunk(ctx context.Context, storeID string, chunk []*openfgav1.TupleKeyWithoutCondition) error {
	_, err := c.api.Write(ctx, &openfgav1.WriteRequest{
		StoreId: storeID, Deletes: &openfgav1.WriteRequestDeletes{TupleKeys: chunk, OnMissing: "ignore"},
	})
	return err
}
