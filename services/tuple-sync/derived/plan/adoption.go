package plan

import (
	"fmt"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

// NotAdoptedMessage returns the message for a store that this cluster has not adopted.
func NotAdoptedMessage(s *corev1alpha1.Store, refusal string) string {
	return fmt.Sprintf("OpenFGA store %s does not belong to this cluster: %s; no tuple of IAM is written or removed there. "+
		"`entail iam adopt --dry-run` lists what would be deleted; then take it over by spec.adoption: %s of Store %s, which needs the verb "+
		"adopt on it, or name another Store by --iam-store", s.Status.StoreID, refusal, corev1alpha1.AdoptionAlways, s.Name)
}
