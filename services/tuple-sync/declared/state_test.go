package declared

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

func TestIAMStoreStaysUntilEmptied(t *testing.T) {
	b := newStateFeeder(t, "")
	b.state.iam = keyOf(kinds.Stores(), "iam")
	emptied := false
	b.state.SetIAMStoreEmptied(func() bool { return emptied })
	going := corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())}}
	for _, name := range []string{"iam", "other"} {
		b.tell(keyOf(kinds.Stores(), name), going, false)
	}
	for _, emptied = range []bool{false, true} {
		for _, name := range []string{"iam", "other"} {
			o, _ := b.state.findObject(keyOf(kinds.Stores(), name))
			if want := name == "iam" && !emptied; o.HasDependents != want || o.IsDeletionDeferred() != want {
				t.Errorf("emptied %v, %s is kept: %v, and looked at again: %v", emptied, name, o.HasDependents, o.IsDeletionDeferred())
			}
		}
	}
}
