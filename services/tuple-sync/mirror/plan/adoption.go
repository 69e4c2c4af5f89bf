package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// Declares says whether somebody who may has said that an OpenFGA store is ours: by taking it over with all that is in it,
// or by the tuple that names its owner.
func Declares(s *corev1alpha1.Store, owner iam.Tuple) bool {
	return s.Spec.Adoption == corev1alpha1.AdoptionAlways || slices.ContainsFunc(s.Spec.Tuples, func(t corev1alpha1.Tuple) bool {
		return t.Condition == nil && iam.Tuple{User: t.User, Relation: t.Relation, Object: t.Object} == owner
	})
}

// Adoption judges whether the OpenFGA store of the IAM store is ours, by the tuples in it that name an owner, and says why
// not. If neither, the tuple is yet to be written.
func Adoption(s *corev1alpha1.Store, owner iam.Tuple, named []iam.Tuple) (adopted bool, refusal string) {
	ours, other := iam.Judge(owner, named)
	switch {
	case s.Spec.Adoption == corev1alpha1.AdoptionAlways:
		return true, ""
	case other != nil:
		return false, fmt.Sprintf("%s says that it is another's", text(*other))
	case ours:
		return true, ""
	case Declares(s, owner) && !written(s):
		return false, ""
	}
	return false, fmt.Sprintf("it does not hold %s, by which it would be", text(owner))
}

// written says whether all is said of the tuples that a Store declares.
func written(s *corev1alpha1.Store) bool {
	c := meta.FindStatusCondition(s.Status.Conditions, corev1alpha1.TuplesSynced)
	return c != nil && c.ObservedGeneration == s.Generation && (c.Status == metav1.ConditionTrue || c.Reason == "Invalid")
}

func text(t iam.Tuple) string { return t.Object + "#" + t.Relation + "@" + t.User }

// NotAdopted is what people are told of a store that is not ours.
func NotAdopted(s *corev1alpha1.Store, refusal string) string {
	return fmt.Sprintf("OpenFGA store %s is not known to be this cluster's: %s; nothing of IAM is written there, and nothing removed, until it is. "+
		"`entail iam adopt --dry-run` lists what would be deleted; then take it over by spec.adoption: %s of Store %s, for which you need the right "+
		"to adopt it, or name another Store by --iam-store", s.Status.StoreID, refusal, corev1alpha1.AdoptionAlways, s.Name)
}
