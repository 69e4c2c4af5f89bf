package store

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/module/moduletest"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

func TestMetricReportsAgeOfOutdatedText(t *testing.T) {
	f, s := newState(t)
	kept := func(typ, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: typ, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.NewTime(time.Unix(1000, 0))}}
	}
	for name, reason := range map[string]string{"kept": corev1alpha1.LastGoodLive, "out": "Rejected"} {
		m := moduletest.NewModel(name, corev1alpha1.StoreRef{Name: "demo"})
		m.Status.Conditions = kept(corev1alpha1.Merged, reason)
		f.PutObject(kinds.AuthorizationModels(), "local", name, m)
	}
	f.PutObject(kinds.Stores(), "local", "demo", &corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Status: corev1alpha1.StoreStatus{
		Live: &corev1alpha1.LiveCoreModule{CoreModule: "module core"}, Conditions: kept(corev1alpha1.ModelSynced, plan.ReasonInvalidCore),
	}})
	const want = `
# HELP entail_last_good_live_since_seconds Unix time at which the present text of an object became invalid. Its last valid version stays in force since.
# TYPE entail_last_good_live_since_seconds gauge
entail_last_good_live_since_seconds{name="demo",resource="stores"} 1000
entail_last_good_live_since_seconds{name="kept",resource="authorizationmodels"} 1000
`
	if err := testutil.CollectAndCompare(NewMetrics(s), strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
