package declared

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
)

func TestObjectIsOutdatedWhileOtherTextIsLive(t *testing.T) {
	merged := metav1.Condition{Type: corev1alpha1.Merged, Status: metav1.ConditionTrue, ObservedGeneration: 2}
	for name, c := range map[string]struct {
		live       *corev1alpha1.LiveModel
		conditions []metav1.Condition
		want       bool
	}{
		"nothing was ever live":             {nil, nil, false},
		"the text is live":                  {&corev1alpha1.LiveModel{StoreUID: "u", Generation: 1, Model: "text"}, nil, false},
		"another is":                        {&corev1alpha1.LiveModel{StoreUID: "u", Generation: 1, Model: "other"}, nil, true},
		"another is in another Store":       {&corev1alpha1.LiveModel{StoreUID: "v", Generation: 1, Model: "other"}, nil, false},
		"it is about to be":                 {&corev1alpha1.LiveModel{StoreUID: "u", Generation: 2, Model: "text"}, nil, true},
		"it is, since this generation only": {&corev1alpha1.LiveModel{StoreUID: "u", Generation: 2, Model: "text"}, []metav1.Condition{merged}, false},
	} {
		store := &corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
		m := &corev1alpha1.AuthorizationModel{
			Spec: corev1alpha1.AuthorizationModelSpec{Model: "text"}, Status: corev1alpha1.AuthorizationModelStatus{Live: c.live, Conditions: c.conditions},
		}
		o := newModelObject(newTupleListCache(), informer.Object[corev1alpha1.AuthorizationModel]{Change: event.Change{Generation: 2}, Value: m}, store, "S")
		if o.Outdated != c.want {
			t.Errorf("%s: %t, want %t", name, o.Outdated, c.want)
		}
	}
}
