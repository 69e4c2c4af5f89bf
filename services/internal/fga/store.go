package fga

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// pageSize is the most that OpenFGA gives at once.
const pageSize = 100

// Store is a store as OpenFGA knows it.
type Store struct {
	ID, Name  string
	CreatedAt time.Time
}

// ValidateStoreName returns [ErrInvalidName], with the rule, for a name that OpenFGA refuses.
func ValidateStoreName(name string) error {
	if (&openfgav1.CreateStoreRequest{Name: name}).Validate() != nil {
		return fmt.Errorf("%.100q is %w: use 3 to 64 letters, digits, spaces or any of . - / ^ _ & @", name, ErrInvalidName)
	}
	return nil
}

// FindStores returns every store of exactly this name, the oldest first.
func (c *Client) FindStores(ctx context.Context, name string) ([]Store, error) {
	if err := ValidateStoreName(name); err != nil {
		return nil, err
	}
	var found []Store
	request := &openfgav1.ListStoresRequest{Name: name, PageSize: wrapperspb.Int32(pageSize)}
	for {
		page, err := c.api.ListStores(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("listing OpenFGA stores named %q: %w", name, err)
		}
		for _, s := range page.GetStores() {
			// A server older than the filter ignores it.
			if s.GetName() == name {
				found = append(found, Store{ID: s.GetId(), Name: s.GetName(), CreatedAt: s.GetCreatedAt().AsTime()})
			}
		}
		if request.ContinuationToken = page.GetContinuationToken(); request.GetContinuationToken() == "" {
			break
		}
	}
	slices.SortFunc(found, func(a, b Store) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

// CreateStore makes a store and returns its id. It does not look for one of the same name.
func (c *Client) CreateStore(ctx context.Context, name string) (string, error) {
	if err := ValidateStoreName(name); err != nil {
		return "", err
	}
	made, err := c.api.CreateStore(ctx, &openfgav1.CreateStoreRequest{Name: name})
	if err != nil {
		return "", fmt.Errorf("creating OpenFGA store %q: %w", name, err)
	}
	return made.GetId(), nil
}

// GetStore reports false for an id that the server does not know, and for what is no id at all.
func (c *Client) GetStore(ctx context.Context, id string) (Store, bool, error) {
	if !isID(id) {
		return Store{}, false, nil
	}
	s, err := c.api.GetStore(ctx, &openfgav1.GetStoreRequest{StoreId: id})
	if errors.Is(err, ErrStoreNotFound) {
		return Store{}, false, nil
	}
	if err != nil {
		return Store{}, false, fmt.Errorf("reading OpenFGA store %s: %w", id, err)
	}
	return Store{ID: s.GetId(), Name: s.GetName(), CreatedAt: s.GetCreatedAt().AsTime()}, true, nil
}

// RenameStore returns [ErrUnsupported] with the open-source server.
func (c *Client) RenameStore(ctx context.Context, id, name string) error {
	if err := ValidateStoreName(name); err != nil {
		return err
	}
	if _, err := c.api.UpdateStore(ctx, &openfgav1.UpdateStoreRequest{StoreId: id, Name: name}); err != nil {
		return fmt.Errorf("renaming OpenFGA store %s to %q: %w", id, name, err)
	}
	return nil
}

// DeleteStore is done when the server knows no store of this id.
func (c *Client) DeleteStore(ctx context.Context, id string) error {
	if !isID(id) {
		return nil
	}
	if _, err := c.api.DeleteStore(ctx, &openfgav1.DeleteStoreRequest{StoreId: id}); err != nil && !errors.Is(err, ErrStoreNotFound) {
		return fmt.Errorf("deleting OpenFGA store %s: %w", id, err)
	}
	return nil
}

// isID reports whether id can be that of a store, or a model, at all.
func isID(id string) bool {
	return (&openfgav1.GetStoreRequest{StoreId: id}).Validate() == nil
}
