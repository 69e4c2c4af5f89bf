package module

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/confirm"
)

// StoreStatement says of a Store what its model and its OpenFGA store depend on.
func StoreStatement(o Store) confirm.Statement {
	return confirm.NewStatement(o, func(s *corev1alpha1.Store) (declared, recorded any) {
		return []any{
			times(s.ObjectMeta), s.Annotations[iaplv1alpha1.RolesAnnotation], s.Spec.CoreModule, s.Spec.Discovery, s.Spec.DeletionPolicy,
		}, []any{s.Status.StoreID, s.Status.Live}
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
