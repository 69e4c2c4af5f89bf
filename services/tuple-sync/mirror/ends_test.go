package mirror

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// doom begins the deletion of the Store.
func (b *bed) doom() {
	b.t.Helper()
	b.put(kinds.Stores(), "iam", &corev1alpha1.Store{
		ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())},
		Status:     corev1alpha1.StoreStatus{StoreID: "store", AuthorizationModelID: "M"},
	})
}

func (b *bed) unprotect() {
	b.t.Helper()
	for _, name := range []string{"docs", "projects", "orgs"} {
		b.drop(kinds.ProtectedResources(), name)
	}
}

// Whoever asks the OpenFGA store of a Store that is gone is answered by its last model.
func TestAStoreThatGoesWithTheLastKindIsEmptiedFirst(t *testing.T) {
	for name, steps := range map[string][]func(*bed){
		"the Store first": {(*bed).doom, (*bed).unprotect},
		"the kinds first": {(*bed).unprotect, (*bed).doom},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.peopled()
			if len(b.openFGA.holds()) == 0 {
				t.Fatal("nobody has anything")
			}
			for _, step := range steps {
				if b.follow(); b.Emptied() {
					t.Error("it may go too early")
				}
				step(b)
			}
			b.work()
			b.follow() // The tail looks again.
			if left := b.openFGA.holds(); len(left) > 0 || !b.Emptied() {
				t.Errorf("it may go: %v; there is left %v", b.Emptied(), left)
			}
		})
	}
}

func TestAStoreThatGoesIsNotHeldByWhatOpenFGADoesNotHave(t *testing.T) {
	b := newBed(t)
	b.peopled()
	b.unprotect()
	b.doom()
	b.openFGA.gone = true
	if b.follow(); !b.Emptied() {
		t.Error("it waits for a store that is gone")
	}
}

func TestAStoreThatGoesIsNotHeldByAModelItNeverHad(t *testing.T) {
	b := newBed(t)
	b.put(kinds.Stores(), "iam", &corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())}})
	if b.follow(); !b.Emptied() {
		t.Error("it waits")
	}
}
