package plan_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
)

func TestUsesDiscovery(t *testing.T) {
	for name, test := range map[string]struct {
		store string
		mode  corev1alpha1.DiscoveryMode
		want  bool
	}{
		"a store":               {"demo", "", true},
		"a store that asks":     {"demo", corev1alpha1.DiscoveryAuto, true},
		"a store that does not": {"demo", corev1alpha1.DiscoveryNone, false},
		"the platform's":        {"orgs", corev1alpha1.DiscoveryAuto, false},
		"one named alike":       {"orgs2", "", true},
	} {
		s := &corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{Name: test.store}, Spec: corev1alpha1.StoreSpec{Discovery: test.mode}}
		if plan.UsesDiscovery(s) != test.want {
			t.Errorf("%s discovers: %t", name, !test.want)
		}
	}
}
