package module

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/confirm"
)

// StoreStatement returns a statement on the fields of a Store on which its model and its OpenFGA store depend. They
// include our finalizer, but not tuple-sync's, which grants nothing.
func StoreStatement(o Store) confirm.Statement {
	return confirm.NewStatement(o, func(s *corev1alpha1.Store) (declared, recorded any) {
		declared = []any{
			objectTimes(s.ObjectMeta), slices.Contains(s.Finalizers, corev1alpha1.StoreFinalizer), s.Annotations[iaplv1alpha1.RolesAnnotation],
			s.Spec.CoreModule, s.Spec.Discovery, s.Spec.DeletionPolicy, s.Spec.Adoption,
		}
		return declared, []any{s.Status.StoreID, s.Status.Adopted, s.Status.AuthorizationModelID, s.Status.Live, s.Status.Modules}
	})
}

// ModelStatement returns a statement on the fields of an AuthorizationModel on which the Store's model depends.
func ModelStatement(o Model) confirm.Statement {
	return confirm.NewStatement(o, func(m *corev1alpha1.AuthorizationModel) (declared, recorded any) {
		var generated []string
		for _, name := range corev1alpha1.GeneratedAnnotations() {
			generated = append(generated, m.Annotations[name])
		}
		return []any{objectTimes(m.ObjectMeta), generated, m.Spec.StoreRef, m.Spec.Model}, m.Status.Live
	})
}

func objectTimes(o metav1.ObjectMeta) any { return []any{o.CreationTimestamp, o.DeletionTimestamp} }
