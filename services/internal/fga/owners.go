package fga

import (
	"context"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/iam"
)

// ReadStoreOwnerTuples returns the owner tuples in a store, for any store name and cluster (see [iam.StoreOwnerTuple]).
func (c *Client) ReadStoreOwnerTuples(ctx context.Context, storeID string) (owners []iam.Tuple, err error) {
	typ, _, _ := strings.Cut(iam.StoreOwnerTuple("", "").Object, ":")
	read, err := c.ReadTypeTuples(ctx, storeID, typ, func(k *openfgav1.TupleKey) bool {
		return k.GetCondition() == nil && iam.IsStoreOwnerTuple(toIAMTuple(k))
	})
	for _, k := range read {
		owners = append(owners, toIAMTuple(k))
	}
	return owners, err
}

func toIAMTuple(k *openfgav1.TupleKey) iam.Tuple {
	return iam.Tuple{User: k.GetUser(), Relation: k.GetRelation(), Object: k.GetObject()}
}
