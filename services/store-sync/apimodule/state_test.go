package apimodule

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/apimodule/discovery"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/module/moduletest"
)

// fixture is a provider with an informer filled by hand.
type fixture struct {
	*moduletest.InformerFeeder

	provider *Provider
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	f := moduletest.NewInformerFeeder(t)
	return fixture{f, New(f.View, discovery.Defaults(), &module.Applier{State: module.NewStoreListers(f.View, moduletest.Cluster)})}
}

// raw puts an object as the API server would send it.
func (f fixture) raw(kind kinds.Kind, cluster, name, object string) event.Key {
	return f.PutObject(kind, cluster, name, json.RawMessage(object))
}

// snapshot returns the state from which modules of a Store are planned.
func (f fixture) snapshot(store event.Key) *storeSnapshot {
	return f.provider.state.collectSnapshot(store, plan.ModuleTemplate{})
}

func storeKey(name string) event.Key { return module.StoreKey(name, moduletest.Cluster) }

func acme() event.Key { return module.StoreKey("acme", "orgs") }

const (
	widgetsCRD = `{"metadata":{"name":"widgets.example.com","labels":{"core.platform-mesh.io/store-name":"demo"}},
		"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"widgets","singular":"widget","kind":"Widget"},"versions":[{"name":"v1","served":true}]},
		"status":{"conditions":[{"type":"Established","status":"True"}]}}`
	pagesCRD     = `{"metadata":{"name":"pages.ui.platform-mesh.io"},"spec":{"group":"ui.platform-mesh.io","names":{"plural":"pages"}}}`
	acmeAccount  = `{"metadata":{"name":"account"},"spec":{"organization":{"name":"acme","originClusterId":"orgs"}}}`
	localBinding = `{"metadata":{"name":"b"},"spec":{"reference":{"export":{"name":"widgets"}}},"status":{"apiExportClusterName":"local"}}`
	localExport  = `{"metadata":{"name":"widgets"},"spec":{"resources":[{"schema":"v1.widgets"}]}}`
	localSchema  = `{"metadata":{"name":"v1.widgets"},"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"widgets","singular":"widget"}}}`
)

func TestAffectedKeysOfAPI(t *testing.T) {
	f := newFixture(t)
	demo, other := f.PutStore("local", "demo", ""), f.PutStore("local", "other", "")
	f.PutStore("local", "orgs", "")
	f.PutStore("east", "far", "")
	f.raw(kinds.AccountInfos(), "team", "account", acmeAccount)
	binding := f.raw(kinds.APIBindings(), "team", "b", localBinding)
	orphan := f.raw(kinds.APIBindings(), "lost", "b", localBinding)
	export := f.raw(kinds.APIExports(), "local", "widgets", localExport)
	tests := map[string]struct {
		object event.Key
		want   []event.Key
	}{
		"a labelled definition":              {f.raw(kinds.CustomResourceDefinitions(), "local", "widgets.example.com", widgetsCRD), []event.Key{demo}},
		"one of another cluster":             {f.raw(kinds.CustomResourceDefinitions(), "east", "widgets.example.com", widgetsCRD), nil},
		"a definition in a discovered group": {f.raw(kinds.CustomResourceDefinitions(), "local", "pages.ui.platform-mesh.io", pagesCRD), []event.Key{demo, other}},
		"a binding":                          {binding, []event.Key{binding, acme()}},
		"a binding of nobody":                {orphan, []event.Key{orphan}},
		"an export":                          {export, []event.Key{acme()}},
		"an export of the name elsewhere":    {f.raw(kinds.APIExports(), "east", "widgets", localExport), nil},
		"a schema":                           {f.raw(kinds.APIResourceSchemas(), "local", "v1.widgets", localSchema), []event.Key{acme()}},
		"a schema of the name elsewhere":     {f.raw(kinds.APIResourceSchemas(), "west", "v1.widgets", localSchema), nil},
		"an AccountInfo":                     {event.Key{Cluster: "team", GroupResource: kinds.AccountInfos().GroupResource, Name: "account"}, []event.Key{acme()}},
		"an AccountInfo that nobody reads":   {f.raw(kinds.AccountInfos(), "team", "other", acmeAccount), nil},
		"an object that nobody knows":        {event.Key{Cluster: "local", GroupResource: kinds.CustomResourceDefinitions().GroupResource, Name: "x.example.com"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := f.provider.AffectedKeys(test.object); !slices.Equal(got, test.want) {
				t.Errorf("touches %v, want %v", got, test.want)
			}
		})
	}
}

func TestAffectedKeysOfDeletedDefinition(t *testing.T) {
	f := newFixture(t)
	crd := f.PutObject(kinds.CustomResourceDefinitions(), "local", "widgets.example.com", json.RawMessage(widgetsCRD), moduletest.MarkDeleted)
	if got := f.provider.AffectedKeys(crd); !slices.Equal(got, []event.Key{storeKey("demo")}) {
		t.Errorf("touches %v", got)
	}
	if !f.provider.state.IsDefinitionDeleted(plan.APIResource{Group: "example.com", Plural: "widgets"}) || f.provider.state.IsDefinitionDeleted(plan.APIResource{Plural: "pods"}) {
		t.Error("it is not known what was deleted")
	}
}

func TestServedResourcesListsServedDefinitions(t *testing.T) {
	f := newFixture(t)
	f.raw(kinds.CustomResourceDefinitions(), "local", "widgets.example.com", widgetsCRD)
	f.raw(kinds.CustomResourceDefinitions(), "east", "widgets.example.com", widgetsCRD)
	for version, want := range map[string]int{"v1": 1, "v2": 0} {
		if got := f.provider.state.ServedResources(schema.GroupVersion{Group: "example.com", Version: version}); len(got) != want {
			t.Errorf("%s serves %v", version, got)
		}
	}
}

func TestModulesAreGeneratedInClusterOfAPI(t *testing.T) {
	f := newFixture(t)
	f.raw(kinds.APIBindings(), "team", "b", localBinding)
	f.raw(kinds.APIExports(), "local", "widgets", localExport)
	f.raw(kinds.APIResourceSchemas(), "local", "v1.widgets", localSchema)
	if g := f.snapshot(acme()); len(g.input.Wanted) != 0 || !g.input.Unsure["local/widgets"] {
		t.Errorf("before the AccountInfo is known: %+v", g.input)
	}
	f.raw(kinds.AccountInfos(), "team", "account", acmeAccount)
	g := f.snapshot(acme())
	if len(g.input.Wanted) != 1 || g.input.Wanted[0].Store != (corev1alpha1.StoreRef{Name: "acme", Cluster: "orgs"}) || len(g.input.Unsure) != 0 {
		t.Errorf("wanted is %+v, unsure %v", g.input.Wanted, g.input.Unsure)
	}
	if g := f.snapshot(storeKey("acme")); len(g.input.Wanted) != 0 {
		t.Errorf("a Store of the name here wants %+v", g.input.Wanted)
	}
	f.PutObject(kinds.APIExports(), "local", "widgets", json.RawMessage(localExport), moduletest.MarkDeleted)
	f.PutObject(kinds.AuthorizationModels(), "local", "widgets-acme", corev1alpha1.AuthorizationModel{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets-acme", Annotations: map[string]string{
			corev1alpha1.ResourceAnnotation: "widgets.example.com", corev1alpha1.ExportAnnotation: "local/widgets",
		}},
		Spec: corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: "acme", Cluster: "orgs"}},
	})
	if g := f.snapshot(acme()); len(g.input.Has) != 1 || !g.input.Unsure["local/widgets"] || len(plan.DecideModels(g.input).Delete) != 0 {
		t.Errorf("without its export: %+v", g.input)
	}
}

// emptyAPIServer is an API server without resources.
type emptyAPIServer struct{ asked int }

func (s *emptyAPIServer) DiscoverResources(context.Context, string) ([]metav1.APIResource, error) {
	s.asked++
	return nil, nil
}

func TestDiscoveryRunsForStoresThatUseIt(t *testing.T) {
	f := newFixture(t)
	api := &emptyAPIServer{}
	cfg := discovery.Config{Ordinary: []string{"ui.platform-mesh.io/v1alpha1"}, AccountType: "account"}
	f.provider.discovery = discovery.New(cfg, api, f.provider.state)
	expect := func(what string, store event.Key, want int) {
		t.Helper()
		err := f.provider.refreshDiscovery(t.Context(), store)
		if _, ready := f.provider.DirectModules(store); err != nil || !ready || api.asked != want {
			t.Errorf("%s: ready %t, asked %d times, want %d (%v)", what, ready, api.asked, want, err)
		}
	}
	expect("the platform's Store", f.PutStore("local", "orgs", ""), 0)
	expect("a Store elsewhere", f.PutStore("east", "demo", ""), 0)
	expect("a Store that does not exist", storeKey("none"), 0)
	demo := f.PutStore("local", "demo", "")
	expect("a Store", demo, 1)
	f.raw(kinds.CustomResourceDefinitions(), "local", "widgets.example.com", widgetsCRD)
	expect("after a change elsewhere", demo, 1)
	f.raw(kinds.CustomResourceDefinitions(), "local", "pages.ui.platform-mesh.io", pagesCRD)
	expect("after a change", demo, 2)
}

func TestModelsOfOtherClustersAreKept(t *testing.T) {
	f := newFixture(t)
	demo := f.PutStore("local", "demo", "id1")
	f.PutObject(kinds.AuthorizationModels(), "east", "widgets-demo", corev1alpha1.AuthorizationModel{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets-demo", Annotations: map[string]string{corev1alpha1.ResourceAnnotation: "widgets.example.com"}},
		Spec:       corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: "demo", Cluster: "local"}},
	})
	g := f.snapshot(demo)
	if todo := plan.DecideModels(g.input); len(g.input.Has) != 0 || len(todo.Delete) != 0 {
		t.Errorf("has %v, would delete %v", g.input.Has, todo.Delete)
	}
}

func TestBindingOfOtherClusterDoesNotGetFinalizer(t *testing.T) {
	f := newFixture(t)
	binding := f.raw(kinds.APIBindings(), "east", "b", localBinding)
	if err := f.provider.SyncAPIBindingFinalizer(t.Context(), nil, binding); err != nil { // It must not write to an API server or report: it has neither.
		t.Error(err)
	}
}
