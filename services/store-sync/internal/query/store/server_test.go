package store

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

func TestReadinessMessage(t *testing.T) {
	ready := metav1.Condition{Type: corev1alpha1.Ready, Status: metav1.ConditionTrue, Reason: "Ready", Message: "all is well"}
	notReady := metav1.Condition{Type: corev1alpha1.Ready, Status: metav1.ConditionFalse, Reason: "InvalidCore", Message: "core is bad"}
	twins := metav1.Condition{Type: corev1alpha1.NameUnique, Status: metav1.ConditionFalse, Reason: "SeveralStores", Message: "twins"}
	drift := metav1.Condition{Type: corev1alpha1.NameInSync, Status: metav1.ConditionFalse, Reason: "Unsupported", Message: "drift"}
	left := metav1.Condition{Type: corev1alpha1.ModulesInSync, Status: metav1.ConditionFalse, Reason: "Rejected", Message: "one left out"}
	kept := metav1.Condition{
		Type: corev1alpha1.ModulesInSync, Status: metav1.ConditionFalse, Reason: corev1alpha1.LastGoodLive, Message: "one stays", LastTransitionTime: metav1.Unix(0, 0),
	}
	tests := map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"new":              {nil, "store-sync has not processed it yet"},
		"tuple-sync away":  {[]metav1.Condition{{Type: corev1alpha1.ModelSynced, Status: metav1.ConditionFalse, Message: "no model"}}, "no model"},
		"not ready":        {[]metav1.Condition{notReady, twins}, "core is bad"},
		"ready":            {[]metav1.Condition{ready}, ""},
		"several stores":   {[]metav1.Condition{ready, twins, left}, "twins"},
		"another name":     {[]metav1.Condition{ready, drift, left}, "drift"},
		"rejected modules": {[]metav1.Condition{ready, left}, "one left out"},
		"a text that was":  {[]metav1.Condition{ready, kept}, "one stays, since 1970-01-01T00:00:00Z"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := readinessMessage(test.conditions); got != test.want {
				t.Errorf("remark %q, want %q", got, test.want)
			}
			s := &corev1alpha1.Store{Status: corev1alpha1.StoreStatus{Conditions: test.conditions}}
			if m := storeToProto(s); m.GetReady() != meta.IsStatusConditionTrue(test.conditions, corev1alpha1.Ready) || m.GetMessage() != test.want {
				t.Errorf("message %v", m)
			}
		})
	}
}
