package fga

import (
	"context"
	"errors"
	"fmt"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// LatestModel returns the model that a check without a model id uses. It returns nil if the store has no model or does
// not exist. See [Client.GetStore].
func (c *Client) LatestModel(ctx context.Context, storeID string) (*openfgav1.AuthorizationModel, error) {
	if !isID(storeID) {
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
// only the model does not.
func (c *Client) ReadModel(ctx context.Context, storeID, modelID string) (*openfgav1.AuthorizationModel, error) {
	m, err := c.api.ReadAuthorizationModel(ctx, &openfgav1.ReadAuthorizationModelRequest{StoreId: storeID, Id: modelID})
	if err != nil && !isID(modelID) {
		err = ErrModelNotFound // The server would only report the format of ids.
	}
	if err != nil {
		return nil, fmt.Errorf("reading model %.100s of OpenFGA store %.100s: %w", modelID, storeID, c.explainStoreError(ctx, storeID, err))
	}
	return m.GetAuthorizationModel(), nil
}

// WriteModel writes m as the latest model and returns its new id. It ignores the id of m. It returns [ErrInvalidModel]
// if the server refuses the model.
func (c *Client) WriteModel(ctx context.Context, storeID string, m *openfgav1.AuthorizationModel) (string, error) {
	written, err := c.api.WriteAuthorizationModel(ctx, &openfgav1.WriteAuthorizationModelRequest{
		StoreId: storeID, SchemaVersion: m.GetSchemaVersion(),
		TypeDefinitions: m.GetTypeDefinitions(), Conditions: m.GetConditions(),
	})
	if err != nil {
		return "", fmt.Errorf("writing model to OpenFGA store %.100s: %w", storeID, c.explainStoreError(ctx, storeID, refusalError(err, ErrInvalidModel)))
	}
	return written.GetAuthorizationModelId(), nil
}

// explainStoreError replaces err by [ErrStoreNotFound] if the store does not exist.
func (c *Client) explainStoreError(ctx context.Context, storeID string, err error) error {
	if !isID(storeID) {
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

// refusalError adds the sentinel to an error about the content of the request.
func refusalError(err, sentinel error) error {
	a, ok := errors.AsType[*answer](err)
	if !ok || a.sentinel != nil || !a.isAboutContent() {
		return err
	}
	return &answer{code: a.code, message: a.message, sentinel: sentinel}
}
