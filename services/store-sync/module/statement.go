package module

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/confirm"
)

// StoreStatement says of a Store what its model and its OpenFGA store depend on. Of its finalizers that is ours: by
// tuple-sync's nothing is given.
func StoreStatement(o Store) confirm.Statement {
	return confirm.NewStatement(o, func(s *corev1alpha1.Store) (declared, recorded any) {
		declared = []any{
			times(s.ObjectMeta), slices.Contains(s.Finalizers, corev1alpha1.StoreFinalizer), s.Annotations[iaplv1alpha1.RolesAnnotation],
			s.Spec.CoreModule, s.Spec.Discovery, s.Spec.DeletionPolicy, s.Spec.Adoption,
		}
		return declared, []any{s.Status.StoreID, s.Status.Adopted, s.Status.AuthorizationModelID, s.Status.Live, s.Status.Modules}
	})
}

// ModelStatement says the same of an AuthorizationModel.
func ModelStatement(o Model) confirm.Statement {
	return confirm.NewStatement(o, func(m *corev1alpha1.AuthorizationModel) (declared, recorded any) {
		var generated []string
		for _, name := range corev1alpha1.GeneratedAnnotations() {
			generated = append(generated, m.Annotations[name])
		}
		return []any{times(m.ObjectMeta), generated, m.Spec.StoreRef, m.Spec.Model}, m.Status.Live
	})
}

func times(o metav1.ObjectMeta) any { return []any{o.CreationTimestamp, o.DeletionTimestamp} }
