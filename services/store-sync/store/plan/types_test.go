package plan_test

import (
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// emptyTypes makes types from no objects.
type emptyTypes struct{}

func (emptyTypes) LiveTypes() []*openfgav1.TypeDefinition           { return nil }
func (emptyTypes) UnchangedTypes() []*openfgav1.TypeDefinition      { return nil }
func (emptyTypes) TypesWithin(int, int) []*openfgav1.TypeDefinition { return nil }

func TestStoreWithProtectedKindsBlocksDeletion(t *testing.T) {
	in := plan.Input{Key: event.Key{Cluster: "local", Name: "iam"}, Store: &corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{
		Name: "iam", DeletionTimestamp: new(metav1.Now()), Finalizers: []string{corev1alpha1.StoreFinalizer},
	}}}
	in.Store.Spec.DeletionPolicy = corev1alpha1.DeletionRetain
	in.Provided = []model.Module{{Origin: model.ModuleOrigin{Kind: model.IAM}, Types: model.PendingTypes{}}}
	if got := plan.NextAction(in, plan.Observed{}); got.Verb != plan.RemoveFinalizer {
		t.Errorf("without kinds the next action is %+v", got)
	}
	in.Provided = []model.Module{{Origin: model.ModuleOrigin{Kind: model.IAM}, Types: emptyTypes{}}}
	if got := plan.NextAction(in, plan.Observed{}); got.Verb != plan.WriteStatus {
		t.Errorf("with kinds the next action is %+v", got)
	}
	if c := meta.FindStatusCondition(plan.DesiredStoreStatus(in, plan.Observed{}).Conditions, corev1alpha1.Deleting); c == nil || c.Reason != corev1alpha1.Blocked || !strings.Contains(c.Message, "ProtectedResources") {
		t.Errorf("told is %+v", c)
	}
	verdict := plan.ModuleVerdict(in, plan.Observed{}, event.Key{GroupResource: kinds.ProtectedResources().GroupResource, Name: "k"})
	if verdict.Merged.Reason != plan.ReasonStoreDeleting || verdict.Merged.IsTrue() {
		t.Errorf("of a kind is told %+v", verdict.Merged)
	}
}
