package module

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/verify"
)

// ExpectedStore returns the expected state of a Store: the fields on which its model and its OpenFGA store depend. They
// include our finalizer, but not tuple-sync's, which grants nothing.
func ExpectedStore(o StoreObject) verify.ExpectedState {
	return verify.NewExpectedState(o, func(s *corev1alpha1.Store) (declared, recorded any) {
		declared = []any{
			creationAndDeletionTimes(s.ObjectMeta), slices.Contains(s.Finalizers, corev1alpha1.StoreFinalizer), s.Annotations[iaplv1alpha1.RolesAnnotation],
			s.Spec.CoreModule, s.Spec.Discovery, s.Spec.DeletionPolicy, s.Spec.Adoption,
		}
		return declared, []any{s.Status.StoreID, s.Status.Adopted, s.Status.AuthorizationModelID, s.Status.Live, s.Status.Modules}
	})
}

// ExpectedModel returns the expected state of an AuthorizationModel: the fields on which the Store's model depends.
func ExpectedModel(o ModelObject) verify.ExpectedState {
	return verify.NewExpectedState(o, func(m *corev1alpha1.AuthorizationModel) (declared, recorded any) {
		var generated []string
		for _, name := range corev1alpha1.GeneratedAnnotations() {
			generated = append(generated, m.Annotations[name])
		}
		return []any{creationAndDeletionTimes(m.ObjectMeta), generated, m.Spec.StoreRef, m.Spec.Model}, m.Status.Live
	})
}

func creationAndDeletionTimes(o metav1.ObjectMeta) any {
	return []any{o.CreationTimestamp, o.DeletionTimestamp}
}
