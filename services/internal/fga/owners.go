package fga

import (
	"context"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/iam"
)

// Owners are the tuples in a store that say whose the IAM store is, under whatever name that is known to them.
func (c *Client) Owners(ctx context.Context, storeID string) (owners []iam.Tuple, err error) {
	typ, _, _ := strings.Cut(iam.StoreOwner("", "").Object, ":")
	read, err := c.ReadType(ctx, storeID, typ, func(k *openfgav1.TupleKey) bool {
		return k.GetCondition() == nil && iam.NamesOwner(ownerOf(k))
	})
	for _, k := range read {
		owners = append(owners, ownerOf(k))
	}
	return owners, err
}

func ownerOf(k *openfgav1.TupleKey) iam.Tuple {
	return iam.Tuple{User: k.GetUser(), Relation: k.GetRelation(), Object: k.GetObject()}
}
