package plan

import (
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// coreModule records in the store the cluster that owns it.
const coreModule = `module entail

type cluster

type store
  relations
    define owner: [cluster]
`

// IAMStoreSpec returns the spec with which the IAM store is created. Later changes to it are left to its users.
func IAMStoreSpec(name, cluster string) corev1alpha1.StoreSpec {
	owner := iam.StoreOwnerTuple(name, cluster)
	return corev1alpha1.StoreSpec{
		CoreModule: coreModule, DeletionPolicy: corev1alpha1.DeletionRetain, Discovery: corev1alpha1.DiscoveryNone,
		Tuples: []corev1alpha1.Tuple{{User: owner.User, Relation: owner.Relation, Object: owner.Object}},
	}
}
