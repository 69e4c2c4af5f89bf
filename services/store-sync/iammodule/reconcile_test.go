package iammodule

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/module/moduletest"
)

type fixture struct {
	*moduletest.InformerFeeder

	provider *Provider
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	f := moduletest.NewInformerFeeder(t)
	return fixture{f, New(f.View, "iam", &module.Applier{State: module.NewStoreListers(f.View, moduletest.Cluster)})}
}

func (f fixture) put(cluster, name string, edit ...func(*iamv1alpha1.ProtectedResource)) event.Key {
	p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = "a.example", name, strings.ToLower(name)+"s", []string{"get"}
	for _, e := range edit {
		e(p)
	}
	return f.PutObject(kinds.ProtectedResources(), cluster, name, p)
}

// typesOf returns the types that a Store's model gets within the room.
func (f fixture) typesOf(t *testing.T, store string, count int) []string {
	t.Helper()
	modules, ready := f.provider.DirectModules(module.StoreKey(store, moduletest.Cluster))
	if !ready {
		t.Fatal("there are no modules yet")
	}
	var names []string
	for _, m := range modules {
		for _, typ := range m.Types.TypesWithin(count, 1<<20) {
			names = append(names, typ.GetType())
		}
	}
	return names
}

func TestProtectedResourceAffectsIAMStoreOnly(t *testing.T) {
	f := newFixture(t)
	if got := f.typesOf(t, "iam", 100); got != nil {
		t.Errorf("with nothing registered the Store has %v", got)
	}
	for store, want := range map[string]int{"iam": 1, "demo": 0} {
		if got, _ := f.provider.DirectModules(module.StoreKey(store, moduletest.Cluster)); len(got) != want {
			t.Errorf("with nothing registered %s has the modules %v", store, got)
		}
	}
	key := f.put(moduletest.Cluster, "K")
	f.put("elsewhere", "E")
	f.put(moduletest.Cluster, "D", func(p *iamv1alpha1.ProtectedResource) { p.DeletionTimestamp = new(metav1.Now()) })
	for store, want := range map[string]int{"iam": 7, "demo": 0} {
		if got := f.typesOf(t, store, 100); len(got) != want {
			t.Errorf("%s has the types %v, want %d", store, got, want)
		}
	}
	for k, want := range map[event.Key]int{
		key: 1, {Cluster: "elsewhere", GroupResource: key.GroupResource, Name: "E"}: 0, module.StoreKey("iam", moduletest.Cluster): 0,
	} {
		if got := f.provider.AffectedKeys(k); len(got) != want || want > 0 && got[0] != f.provider.state.store {
			t.Errorf("%s touches %v", k, got)
		}
	}
	if members, err := f.provider.SyncModels(t.Context(), nil, module.StoreKey("demo", moduletest.Cluster)); len(members) > 0 || err != nil {
		t.Errorf("another Store has the members %v (%v)", members, err)
	}
}

func TestRegistryIsCachedUntilRelevantChange(t *testing.T) {
	f := newFixture(t)
	asked := 0
	cache := module.NewPerStoreCache(func([]model.Module) (int, error) { asked++; return asked, nil })
	ask := func() int {
		modules, _ := f.provider.DirectModules(f.provider.state.store)
		answer, _ := cache.Get(f.provider.state.store, modules)
		return answer
	}
	f.put(moduletest.Cluster, "K")
	first := ask()
	f.put(moduletest.Cluster, "K", func(p *iamv1alpha1.ProtectedResource) {
		p.Labels = map[string]string{"a": "b"}
		p.Status.Conditions = []metav1.Condition{{Type: iamv1alpha1.Observed, LastTransitionTime: metav1.Now()}}
	})
	if ask() != first {
		t.Error("a label is asked about")
	}
	f.put(moduletest.Cluster, "K", func(p *iamv1alpha1.ProtectedResource) { p.Spec.Permissions = []string{"list"} })
	if ask() == first {
		t.Error("another permission is not asked about")
	}
}
