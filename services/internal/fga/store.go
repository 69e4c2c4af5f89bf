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

// pageSize bounds a page. It is the maximum that OpenFGA allows.
const pageSize = 100

// Store describes an OpenFGA store.
type Store struct {
	ID, Name  string
	CreatedAt time.Time
}

// ValidateStoreName returns an error that wraps [ErrInvalidName] if OpenFGA would refuse the name. The error states
// the rule.
func ValidateStoreName(name string) error {
	if (&openfgav1.CreateStoreRequest{Name: name}).Validate() != nil {
		return fmt.Errorf("%.100q is %w: use 3 to 64 letters, digits, spaces or any of . - / ^ _ & @", name, ErrInvalidName)
	}
	return nil
}

// FindStores returns all stores with exactly this name, the oldest first.
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
			// Older servers ignore the name filter.
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

// CreateStore creates a store and returns its ID. It does not check for stores with the same name.
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

// GetStore returns a store. It returns false for an unknown or malformed ID.
func (c *Client) GetStore(ctx context.Context, id string) (Store, bool, error) {
	if !isValidID(id) {
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

// RenameStore renames a store. The open-source server does not support this and returns [ErrUnsupported].
func (c *Client) RenameStore(ctx context.Context, id, name string) error {
	if err := ValidateStoreName(name); err != nil {
		return err
	}
	if _, err := c.api.UpdateStore(ctx, &openfgav1.UpdateStoreRequest{StoreId: id, Name: name}); err != nil {
		return fmt.Errorf("renaming OpenFGA store %s to %q: %w", id, name, err)
	}
	return nil
}

// DeleteStore deletes a store. It returns nil if the store does not exist.
func (c *Client) DeleteStore(ctx context.Context, id string) error {
	if !isValidID(id) {
		return nil
	}
	if _, err := c.api.DeleteStore(ctx, &openfgav1.DeleteStoreRequest{StoreId: id}); err != nil && !errors.Is(err, ErrStoreNotFound) {
		return fmt.Errorf("deleting OpenFGA store %s: %w", id, err)
	}
	return nil
}

// isValidID reports whether id has the form of a store ID or model ID.
func isValidID(id string) bool {
	return (&openfgav1.GetStoreRequest{StoreId: id}).Validate() == nil
}
