package iam

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

// Parts of the tuple that names the owner of a store. The types come from the core module, with which store-sync
// creates the IAM store.
const (
	ownerRelation = "owner"
	storeType     = "store:"
	clusterType   = "cluster:"
)

// StoreOwnerTuple returns the tuple that makes a cluster the owner of the IAM store with this name. A service does not
// change IAM's tuples in a store that lacks this tuple or has the tuple of another cluster.
func StoreOwnerTuple(store, cluster string) Tuple {
	return Tuple{User: clusterType + cluster, Relation: ownerRelation, Object: storeType + store}
}

// IsStoreOwnerTuple reports whether a tuple names the owner of a store.
func IsStoreOwnerTuple(t Tuple) bool {
	return t.Relation == ownerRelation && strings.HasPrefix(t.Object, storeType) && strings.HasPrefix(t.User, clusterType)
}

// StoreOfOwnerTuple returns the name of the store in an owner tuple.
func StoreOfOwnerTuple(t Tuple) (store string) { return strings.TrimPrefix(t.Object, storeType) }

// CompareStoreOwnerTuples compares the owner tuples in a store with the expected one. ours is true if there is at least
// one tuple and all equal owner. other is the first tuple that differs, or nil.
func CompareStoreOwnerTuples(owner Tuple, stored []Tuple) (ours bool, other *Tuple) {
	for i, t := range stored {
		if t != owner {
			return false, &stored[i]
		}
		ours = true
	}
	return ours, nil
}

// HasDeclaredOwner reports whether a Store declares that its OpenFGA store belongs to the owner. The Store declares it
// by the owner tuple, or by the adoption of the store with its content.
func HasDeclaredOwner(s *corev1alpha1.Store, owner Tuple) bool {
	return s.Spec.Adoption == corev1alpha1.AdoptionAlways || slices.ContainsFunc(s.Spec.Tuples, func(t corev1alpha1.Tuple) bool {
		return t.Condition == nil && Tuple{User: t.User, Relation: t.Relation, Object: t.Object} == owner
	})
}

// DecideAdoption decides, by the owner tuples in it, whether the OpenFGA store of the IAM Store belongs to owner.
// store-sync and tuple-sync both use it. If adopted is false and refusal is empty, the store still waits for the owner
// tuple.
func DecideAdoption(s *corev1alpha1.Store, owner Tuple, stored []Tuple) (adopted bool, refusal string) {
	ours, other := CompareStoreOwnerTuples(owner, stored)
	switch {
	case s.Spec.Adoption == corev1alpha1.AdoptionAlways:
		return true, ""
	case other != nil:
		return false, fmt.Sprintf("%s names another cluster as the owner", formatTuple(*other))
	case !HasDeclaredOwner(s, owner):
		return false, fmt.Sprintf("spec.tuples of Store %s does not declare %s", s.Name, formatTuple(owner))
	case ours, meta.IsStatusConditionTrue(s.Status.Conditions, corev1alpha1.Adopted):
		// The owner tuple is declared, so its removal in OpenFGA alone does not end the adoption.
		return true, ""
	case !hasSyncedTuples(s):
		return false, ""
	}
	return false, fmt.Sprintf("it does not hold %s, by which it would be", formatTuple(owner))
}

// hasSyncedTuples reports whether tuple-sync has processed the tuples of the present generation of a Store.
func hasSyncedTuples(s *corev1alpha1.Store) bool {
	c := meta.FindStatusCondition(s.Status.Conditions, corev1alpha1.TuplesSynced)
	return c != nil && c.ObservedGeneration == s.Generation && (c.Status == metav1.ConditionTrue || c.Reason == "Invalid")
}

func formatTuple(t Tuple) string { return t.Object + "#" + t.Relation + "@" + t.User }
