package fga

import (
	"context"
	"errors"
	"fmt"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// ReadLatestModel returns the model that a check without a model ID uses. It returns nil if the store has no model or
// does not exist. See [Client.GetStore].
func (c *Client) ReadLatestModel(ctx context.Context, storeID string) (*openfgav1.AuthorizationModel, error) {
	if !isValidID(storeID) {
		return nil, nil //nolint:nilnil // As for an unknown store.
	}
	page, err := c.api.ReadAuthorizationModels(ctx, &openfgav1.ReadAuthorizationModelsRequest{
		StoreId: storeID, PageSize: wrapperspb.Int32(1),
	})
	if err != nil {
		return nil, fmt.Errorf("reading latest model of OpenFGA store %s: %w", storeID, err)
	}
	if len(page.GetAuthorizationModels()) == 0 {
		return nil, nil //nolint:nilnil // No model is an answer, not an error.
	}
	return page.GetAuthorizationModels()[0], nil
}

// ReadModel returns a model. The error is [ErrStoreNotFound] if the store does not exist, and [ErrModelNotFound] if
// only the model does not exist.
func (c *Client) ReadModel(ctx context.Context, storeID, modelID string) (*openfgav1.AuthorizationModel, error) {
	m, err := c.api.ReadAuthorizationModel(ctx, &openfgav1.ReadAuthorizationModelRequest{StoreId: storeID, Id: modelID})
	if err != nil && !isValidID(modelID) {
		err = ErrModelNotFound // The server's error would only describe the format of IDs.
	}
	if err != nil {
		return nil, fmt.Errorf("reading model %.100s of OpenFGA store %.100s: %w", modelID, storeID, c.replaceIfStoreNotFound(ctx, storeID, err))
	}
	return m.GetAuthorizationModel(), nil
}

// WriteModel writes m as the latest model and returns its new ID. It ignores the ID of m. The error is
// [ErrInvalidModel] if the server refuses the model.
func (c *Client) WriteModel(ctx context.Context, storeID string, m *openfgav1.AuthorizationModel) (string, error) {
	written, err := c.api.WriteAuthorizationModel(ctx, &openfgav1.WriteAuthorizationModelRequest{
		StoreId: storeID, SchemaVersion: m.GetSchemaVersion(),
		TypeDefinitions: m.GetTypeDefinitions(), Conditions: m.GetConditions(),
	})
	if err != nil {
		return "", fmt.Errorf("writing model to OpenFGA store %.100s: %w", storeID, c.replaceIfStoreNotFound(ctx, storeID, withSentinel(err, ErrInvalidModel)))
	}
	return written.GetAuthorizationModelId(), nil
}

// replaceIfStoreNotFound replaces err by [ErrStoreNotFound] if the store does not exist.
func (c *Client) replaceIfStoreNotFound(ctx context.Context, storeID string, err error) error {
	if !isValidID(storeID) {
		return ErrStoreNotFound
	}
	if !errors.Is(err, ErrModelNotFound) {
		return err
	}
	_, found, getErr := c.GetStore(ctx, storeID)
	switch {
	case getErr != nil:
		return getErr
	case !found:
		return ErrStoreNotFound
	default:
		return err
	}
}

// withSentinel adds sentinel to an error about the content of the request.
func withSentinel(err, sentinel error) error {
	a, ok := errors.AsType[*serverError](err)
	if !ok || a.sentinel != nil || !a.isContentRefusal() {
		return err
	}
	return &serverError{code: a.code, message: a.message, sentinel: sentinel}
}
