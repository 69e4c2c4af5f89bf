package store

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/module/moduletest"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// newState returns the state of an informer filled by hand.
func newState(t *testing.T) (*moduletest.InformerFeeder, *State) {
	t.Helper()
	f := moduletest.NewInformerFeeder(t)
	return f, NewState(module.NewStoreListers(f.View, moduletest.Cluster))
}

// refer puts an AuthorizationModel here that refers to a Store.
func refer(f *moduletest.InformerFeeder, name string, ref corev1alpha1.StoreRef) event.Key {
	return f.PutObject(kinds.AuthorizationModels(), "local", name, moduletest.NewModel(name, ref))
}

func storeKey(name string) event.Key { return module.StoreKey(name, "local") }

func TestAffectedStores(t *testing.T) {
	f, s := newState(t)
	demo, other := f.PutStore("local", "demo", "id1"), f.PutStore("local", "other", "id2")
	twin, foreign := f.PutStore("local", "twin", "id2"), f.PutStore("east", "demo", "id3")
	waiting := f.PutObject(kinds.Stores(), "local", "waiting", corev1alpha1.Store{
		ObjectMeta: metav1.ObjectMeta{Name: "waiting"},
		Status: corev1alpha1.StoreStatus{Conditions: []metav1.Condition{{
			Type: corev1alpha1.StoreSynced, Status: metav1.ConditionFalse, Reason: moduleplan.ReasonClaimed,
			Message: moduleplan.StoreClaimedMessage("id9", "holder", "local"),
		}}},
	})
	holder := f.PutObject(kinds.Stores(), "local", "holder", corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{Name: "holder"}}, moduletest.MarkDeleted)
	gone := f.PutObject(kinds.AuthorizationModels(), "local", "d", moduletest.NewModel("d", corev1alpha1.StoreRef{Name: "demo"}), moduletest.MarkDeleted)
	tests := map[string]struct {
		object event.Key
		want   []event.Key
	}{
		"a Store":                                    {demo, []event.Key{demo}},
		"a Store that shares its OpenFGA one":        {other, []event.Key{other, twin}},
		"a Store elsewhere of the name":              {foreign, []event.Key{foreign, demo}},
		"a Store that is gone and another waits for": {holder, []event.Key{holder, waiting}},
		"a Store that nobody knows":                  {storeKey("new"), []event.Key{storeKey("new")}},
		"a module":                                   {refer(f, "a", corev1alpha1.StoreRef{Name: "demo"}), []event.Key{demo}},
		"a module of a Store elsewhere":              {refer(f, "b", corev1alpha1.StoreRef{Name: "demo", Cluster: "east"}), []event.Key{foreign}},
		"a module of no Store":                       {refer(f, "c", corev1alpha1.StoreRef{Name: "none"}), []event.Key{storeKey("none")}},
		"a module that is gone":                      {gone, []event.Key{demo}},
		"a module that nobody knows":                 {event.Key{GroupResource: kinds.AuthorizationModels().GroupResource, Name: "x"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := s.AffectedStores(test.object); !slices.Equal(got, test.want) {
				t.Errorf("touches %v, want %v", got, test.want)
			}
		})
	}
}

func TestSnapshotHoldsObjectsOfStore(t *testing.T) {
	f, s := newState(t)
	demo := f.PutStore("local", "demo", "id1")
	f.PutStore("local", "twin", "id1")
	f.PutStore("local", "holder", "id9")
	f.PutStore("local", "stranger", "id2")
	f.PutStore("east", "demo", "")
	refer(f, "mine", corev1alpha1.StoreRef{Name: "demo"})
	refer(f, "named", corev1alpha1.StoreRef{Name: "demo", Cluster: "local"})
	refer(f, "foreign", corev1alpha1.StoreRef{Name: "demo", Cluster: "east"})
	f.PutObject(kinds.AuthorizationModels(), "local", "gone", moduletest.NewModel("gone", corev1alpha1.StoreRef{Name: "demo"}), moduletest.MarkDeleted)
	in := s.Snapshot(demo, plan.Observed{Named: []plan.OpenFGAStore{{ID: "id9"}}})
	if in.Store == nil || in.Gone != nil || in.Change.Key != demo {
		t.Errorf("the Store is %+v, %+v", in.Store, in.Gone)
	}
	var modules, rivals []string
	for _, m := range in.Modules {
		modules = append(modules, m.Key.Name)
	}
	for _, r := range in.Rivals {
		rivals = append(rivals, r.Key.Cluster+"/"+r.Key.Name)
	}
	slices.Sort(rivals)
	if want := []string{"mine", "named"}; !slices.Equal(modules, want) {
		t.Errorf("modules %v, want %v", modules, want)
	}
	if want := []string{"east/demo", "local/holder", "local/twin"}; !slices.Equal(rivals, want) {
		t.Errorf("rivals %v, want %v", rivals, want)
	}
}

func TestSnapshotOfOtherClusterIsReadOnly(t *testing.T) {
	f, s := newState(t)
	foreign := f.PutStore("east", "demo", "id1")
	refer(f, "guest", corev1alpha1.StoreRef{Name: "demo", Cluster: "east"})
	in := s.Snapshot(foreign, plan.Observed{})
	if in.Store != nil || in.Gone != nil || len(in.Modules) != 1 {
		t.Errorf("input is %+v", in)
	}
	if a := plan.NextAction(in, plan.Observed{}); a.Verb != plan.WriteStatus {
		t.Errorf("we would %s", a.Verb)
	}
}

func TestSnapshotIncludesDeletedStore(t *testing.T) {
	f, s := newState(t)
	demo := f.PutStore("local", "demo", "id1")
	f.PutObject(kinds.Stores(), "local", "demo", corev1alpha1.Store{Status: corev1alpha1.StoreStatus{StoreID: "id1"}}, moduletest.MarkDeleted)
	if in := s.Snapshot(demo, plan.Observed{}); in.Store != nil || in.Gone == nil || in.Gone.Status.StoreID != "id1" || !in.Change.Deleted {
		t.Errorf("input is %+v", in)
	}
}

func TestModuleStatusReportsStoreOfOtherCluster(t *testing.T) {
	f, s := newState(t)
	guest := refer(f, "guest", corev1alpha1.StoreRef{Name: "demo", Cluster: "east"})
	for state, want := range map[corev1alpha1.ModuleState]string{
		"": plan.ReasonStorePending, "Merged": plan.ReasonMerged, "Rejected": moduleplan.ReasonRejected,
	} {
		o := corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Status: corev1alpha1.StoreStatus{StoreID: "id1"}}
		if state != "" {
			o.Status.Modules = []corev1alpha1.ModuleStatus{{Source: "authorizationmodel/local/guest", State: state}}
		}
		foreign := f.PutObject(kinds.Stores(), "east", "demo", o)
		if got := s.AffectedStores(foreign); !slices.Equal(got, []event.Key{foreign}) || !slices.Equal(s.AffectedStores(guest), got) {
			t.Errorf("the Store touches %v, the module %v", got, s.AffectedStores(guest))
		}
		in := s.Snapshot(foreign, plan.Observed{})
		status := plan.DesiredModuleStatus(in.Modules[0].Value, plan.ModuleVerdict(in, plan.Observed{}, guest))
		c := meta.FindStatusCondition(status.Fields.(corev1alpha1.AuthorizationModelStatus).Conditions, corev1alpha1.Merged)
		if c.Reason != want || (c.Status == metav1.ConditionTrue) != (state == "Merged") {
			t.Errorf("%s: %+v", state, c)
		}
	}
}

func TestModuleForUnknownClusterExplainsNames(t *testing.T) {
	f, s := newState(t)
	lost := refer(f, "lost", corev1alpha1.StoreRef{Name: "demo", Cluster: "nowhere"})
	verdict := plan.ModuleVerdict(s.Snapshot(s.AffectedStores(lost)[0], plan.Observed{}), plan.Observed{}, lost)
	if c := verdict.Merged; c.Reason != plan.ReasonStoreNotFound || !strings.Contains(c.Message, `cluster "nowhere"`) || !strings.Contains(c.Message, `this one is "local"`) {
		t.Errorf("condition is %+v", c)
	}
}
