package iam

import "strings"

// What says in a store whose it is. The types are of the core module by which store-sync makes the IAM store.
const (
	ownerRelation = "owner"
	storeType     = "store:"
	clusterType   = "cluster:"
)

// StoreOwner is the tuple by which the IAM store of a name is a cluster's: whoever finds IAM's tuples without it, or with that of
// another cluster, leaves them alone.
func StoreOwner(store, cluster string) Tuple {
	return Tuple{User: clusterType + cluster, Relation: ownerRelation, Object: storeType + store}
}

// NamesOwner says whether a tuple says of a store whose it is.
func NamesOwner(t Tuple) bool {
	return t.Relation == ownerRelation && strings.HasPrefix(t.Object, storeType) && strings.HasPrefix(t.User, clusterType)
}

// OwnerOf is the store's name that a tuple which names an owner is about.
func OwnerOf(t Tuple) (store string) { return strings.TrimPrefix(t.Object, storeType) }

// Judge finds whether a store is an owner's by the tuples in it that name one, or the first that says that it is another's.
func Judge(owner Tuple, named []Tuple) (ours bool, other *Tuple) {
	for i, t := range named {
		if t != owner {
			return false, &named[i]
		}
		ours = true
	}
	return ours, nil
}
