package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

// ReasonClaimed is the reason of StoreSynced while the OpenFGA store with this name belongs to another Store.
const ReasonClaimed = "Claimed"

// claimFormat names the OpenFGA store, and the Store and the cluster that hold it.
const claimFormat = "OpenFGA store %s belongs to Store %q of cluster %q"

// StoreClaimedMessage returns the message that names the holder of an OpenFGA store.
func StoreClaimedMessage(storeID, holder, cluster string) string {
	return fmt.Sprintf(claimFormat, storeID, holder, cluster) +
		"; two Stores cannot share one: delete one of them, or give it another name"
}

// ClaimHolderName returns the name of the Store that holds the OpenFGA store of s, or "" unless the condition of s names
// one.
func ClaimHolderName(s *corev1alpha1.Store) string {
	c := meta.FindStatusCondition(s.Status.Conditions, corev1alpha1.StoreSynced)
	if c == nil || c.Reason != ReasonClaimed {
		return ""
	}
	var id, holder, cluster string
	if _, err := fmt.Sscanf(c.Message, claimFormat, &id, &holder, &cluster); err != nil {
		return ""
	}
	return holder
}
