package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

// ReasonClaimed is the reason of StoreSynced while another Store has the OpenFGA store of this name.
const ReasonClaimed = "Claimed"

// claimFormat names the OpenFGA store, and the Store and cluster that have it.
const claimFormat = "OpenFGA store %s belongs to Store %q of cluster %q"

// ClaimMessage says which Store has an OpenFGA store.
func ClaimMessage(storeID, holder, cluster string) string {
	return fmt.Sprintf(claimFormat, storeID, holder, cluster) +
		"; two Stores cannot share one: delete one of them, or give it another name"
}

// ClaimHolder returns the name of the Store that a Store waits for, or "" unless it says that another Store has its OpenFGA store.
func ClaimHolder(s *corev1alpha1.Store) string {
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
