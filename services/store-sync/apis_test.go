package storesync

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
	apimodel "github.com/entail-dev/entail/services/store-sync/apimodule/plan"
)

// raw puts an object as the API server would send it.
func (d *desk) raw(kind kinds.Kind, cluster, name, object string) event.Key {
	d.Helper()
	return d.put(kind, cluster, name, json.RawMessage(object), false)
}

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

func TestAnAPITouchesTheStoresWhoseModelsItBelongsInto(t *testing.T) {
	d := newDesk(t)
	demo, other := d.store("local", "demo", ""), d.store("local", "other", "")
	d.store("local", "orgs", "")
	d.store("east", "far", "")
	acme := event.Key{Cluster: "orgs", GroupResource: kinds.Stores().GroupResource, Name: "acme"}
	d.raw(kinds.AccountInfos(), "team", "account", acmeAccount)
	binding := d.raw(kinds.Bindings(), "team", "b", localBinding)
	orphan := d.raw(kinds.Bindings(), "lost", "b", localBinding)
	export := d.raw(kinds.Exports(), "local", "widgets", localExport)
	tests := map[string]struct {
		object event.Key
		want   []event.Key
	}{
		"a labelled definition":              {d.raw(kinds.Definitions(), "local", "widgets.example.com", widgetsCRD), []event.Key{demo}},
		"one of another cluster":             {d.raw(kinds.Definitions(), "east", "widgets.example.com", widgetsCRD), nil},
		"a definition in a discovered group": {d.raw(kinds.Definitions(), "local", "pages.ui.platform-mesh.io", pagesCRD), []event.Key{demo, other}},
		"a binding":                          {binding, []event.Key{binding, acme}},
		"a binding of nobody":                {orphan, []event.Key{orphan}},
		"an export":                          {export, []event.Key{acme}},
		"an export of the name elsewhere":    {d.raw(kinds.Exports(), "east", "widgets", localExport), nil},
		"a schema":                           {d.raw(kinds.ResourceSchemas(), "local", "v1.widgets", localSchema), []event.Key{acme}},
		"a schema of the name elsewhere":     {d.raw(kinds.ResourceSchemas(), "west", "v1.widgets", localSchema), nil},
		"an AccountInfo":                     {event.Key{Cluster: "team", GroupResource: kinds.AccountInfos().GroupResource, Name: "account"}, []event.Key{acme}},
		"an AccountInfo that nobody reads":   {d.raw(kinds.AccountInfos(), "team", "other", acmeAccount), nil},
		"an object that nobody knows":        {event.Key{Cluster: "local", GroupResource: kinds.Definitions().GroupResource, Name: "x.example.com"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := d.Keys(test.object); !slices.Equal(got, test.want) {
				t.Errorf("touches %v, want %v", got, test.want)
			}
		})
	}
}

func TestADeletedDefinitionTouchesTheStoreOfItsLabel(t *testing.T) {
	d := newDesk(t)
	crd := d.put(kinds.Definitions(), "local", "widgets.example.com", json.RawMessage(widgetsCRD), true)
	if got := d.Keys(crd); !slices.Equal(got, []event.Key{storeKey("demo")}) {
		t.Errorf("touches %v", got)
	}
	if !d.Gone(apimodel.Resource{Group: "example.com", Plural: "widgets"}) || d.Gone(apimodel.Resource{Plural: "pods"}) {
		t.Error("it is not known what was deleted")
	}
}

func TestOnlyWhatIsServedHereIsServed(t *testing.T) {
	d := newDesk(t)
	d.raw(kinds.Definitions(), "local", "widgets.example.com", widgetsCRD)
	d.raw(kinds.Definitions(), "east", "widgets.example.com", widgetsCRD)
	for version, want := range map[string]int{"v1": 1, "v2": 0} {
		if got := d.Serving(schema.GroupVersion{Group: "example.com", Version: version}); len(got) != want {
			t.Errorf("%s serves %v", version, got)
		}
	}
}

func TestTheModulesOfAStoreAreMadeInTheClusterOfTheirAPI(t *testing.T) {
	d := newDesk(t)
	acme := event.Key{Cluster: "orgs", GroupResource: kinds.Stores().GroupResource, Name: "acme"}
	d.raw(kinds.Bindings(), "team", "b", localBinding)
	d.raw(kinds.Exports(), "local", "widgets", localExport)
	d.raw(kinds.ResourceSchemas(), "local", "v1.widgets", localSchema)
	if g := d.generation(acme); len(g.Wanted) != 0 || !g.Unsure["local/widgets"] {
		t.Errorf("before the AccountInfo is known: %+v", g.Input)
	}
	d.raw(kinds.AccountInfos(), "team", "account", acmeAccount)
	g := d.generation(acme)
	if len(g.Wanted) != 1 || g.Wanted[0].Store != (corev1alpha1.StoreRef{Name: "acme", Cluster: "orgs"}) || len(g.Unsure) != 0 {
		t.Errorf("wanted is %+v, unsure %v", g.Wanted, g.Unsure)
	}
	if g := d.generation(storeKey("acme")); len(g.Wanted) != 0 {
		t.Errorf("a Store of the name here wants %+v", g.Wanted)
	}
	d.put(kinds.Exports(), "local", "widgets", json.RawMessage(localExport), true)
	d.put(kinds.AuthorizationModels(), "local", "widgets-acme", corev1alpha1.AuthorizationModel{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets-acme", Annotations: map[string]string{
			corev1alpha1.ResourceAnnotation: "widgets.example.com", corev1alpha1.ExportAnnotation: "local/widgets",
		}},
		Spec: corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: "acme", Cluster: "orgs"}},
	}, false)
	if g := d.generation(acme); len(g.Has) != 1 || !g.Unsure["local/widgets"] || len(apimodel.Make(g.Input).Delete) != 0 {
		t.Errorf("without its export: %+v", g.Input)
	}
}

// silent is an API server that answers nothing.
type silent struct{ asked int }

func (s *silent) Resources(context.Context, string) ([]metav1.APIResource, error) {
	s.asked++
	return nil, nil
}

func TestDiscoveryIsDoneForStoresThatWantItAndWhenADefinitionChanged(t *testing.T) {
	d := newDesk(t)
	api := &silent{}
	cfg := discovery.Config{Ordinary: []string{"ui.platform-mesh.io/v1alpha1"}, AccountType: "account"}
	r := &reconciler{objects: d.objects, view: d.view}
	r.objects.discovery = discovery.New(cfg, api, d.apis)
	expect := func(what string, store event.Key, want int) {
		t.Helper()
		if known, err := r.discover(t.Context(), store); err != nil || !known || api.asked != want {
			t.Errorf("%s: known %t, asked %d times, want %d (%v)", what, known, api.asked, want, err)
		}
	}
	expect("the platform's Store", d.store("local", "orgs", ""), 0)
	expect("a Store elsewhere", d.store("east", "demo", ""), 0)
	expect("a Store that does not exist", storeKey("none"), 0)
	demo := d.store("local", "demo", "")
	expect("a Store", demo, 1)
	r.noticed(d.raw(kinds.Definitions(), "local", "widgets.example.com", widgetsCRD))
	expect("after a change elsewhere", demo, 1)
	r.noticed(d.raw(kinds.Definitions(), "local", "pages.ui.platform-mesh.io", pagesCRD))
	expect("after a change", demo, 2)
}
