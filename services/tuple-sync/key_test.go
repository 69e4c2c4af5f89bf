package tuplesync

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

func TestAnObjectTouchesEveryStoreThatMayHaveToChange(t *testing.T) {
	keyOf := func(kind kinds.Kind, name string) event.Key {
		return event.Key{Cluster: "local", GroupResource: kind.GroupResource, Name: name}
	}
	store, module := keyOf(kinds.Stores(), "a"), keyOf(kinds.AuthorizationModels(), "m")
	recorded := func(id string) corev1alpha1.StoreStatus {
		return corev1alpha1.StoreStatus{ManagedTuples: []corev1alpha1.Tuple{one}, ManagedTuplesStoreID: id}
	}
	for name, c := range map[string]struct {
		store, module corev1alpha1.StoreStatus
		ref           string
		gone          string
		of            event.Key
		want          []Key
	}{
		"a Store with its store":                  {store: corev1alpha1.StoreStatus{StoreID: "S"}, ref: "a", of: store, want: []Key{{StoreID: "S"}}},
		"a Store without takes its modules along": {ref: "a", of: store, want: []Key{{Owner: store}, {Owner: module}}},
		"a Store that got another store":          {store: corev1alpha1.StoreStatus{StoreID: "S", ManagedTuples: []corev1alpha1.Tuple{one}, ManagedTuplesStoreID: "L"}, of: store, want: []Key{{StoreID: "L"}, {StoreID: "S"}}},
		"a module with a store":                   {store: corev1alpha1.StoreStatus{StoreID: "S"}, ref: "a", of: module, want: []Key{{StoreID: "S"}}},
		"a module that moves":                     {store: corev1alpha1.StoreStatus{StoreID: "S"}, module: recorded("L"), ref: "a", of: module, want: []Key{{StoreID: "L"}, {StoreID: "S"}}},
		"a module of nothing":                     {ref: "none", of: module, want: []Key{{Owner: module}}},
		"a module of a Store without a store":     {ref: "a", of: module, want: []Key{{Owner: module}, {Owner: store}}},
		"a Store deleted in good order":           {store: corev1alpha1.StoreStatus{StoreID: "S"}, ref: "a", gone: "a", of: store, want: []Key{{StoreID: "S"}, {Owner: module}}},
		"a Store deleted by force":                {store: recorded("L"), gone: "a", ref: "none", of: store, want: []Key{{StoreID: "L"}}},
		"a module deleted lets its Store go on":   {store: corev1alpha1.StoreStatus{StoreID: "S"}, ref: "a", gone: "m", of: module, want: []Key{{StoreID: "S"}}},
		"a module deleted by force":               {module: recorded("L"), ref: "none", gone: "m", of: module, want: []Key{{StoreID: "L"}}},
		"what was never there":                    {of: keyOf(kinds.Stores(), "never")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := start(w, nil)
			for _, a := range []*thing{w.newThing(kinds.Stores(), "a"), w.newThing(kinds.AuthorizationModels(), "m")} {
				a.status, a.ref = c.store, c.ref
				if !a.isStore() {
					a.status = c.module
				}
				if a.meta.Name == c.gone {
					now := metav1.Now()
					a.meta.DeletionTimestamp = &now
				}
				p.receive(w.changed(a))
			}
			if got := p.Keys(c.of); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAReferenceToAnotherClusterIsNotToTheStoreOfThatNameHere(t *testing.T) {
	w := newWorld(t)
	p := start(w, nil)
	store := w.newThing(kinds.Stores(), "a")
	store.status.StoreID = "S"
	p.receive(w.changed(store))
	m := corev1alpha1.AuthorizationModel{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: "a", Cluster: "far"}}}
	change := event.Change{Key: event.Key{Cluster: "local", GroupResource: kinds.AuthorizationModels().GroupResource, Name: "m"}, UID: "m", ResourceVersion: "7", Epoch: "e", Object: mustJSON(t, m)}
	p.receive(change)
	if got := p.Keys(change.Key); !slices.Equal(got, []Key{{Owner: change.Key}}) {
		t.Errorf("got %v", got)
	}
	if got := p.Keys(store.key()); !slices.Equal(got, []Key{{StoreID: "S"}}) {
		t.Errorf("the Store touches %v", got)
	}
}

func TestAnAccountInfoTouchesTheStoreOfItsOrganization(t *testing.T) {
	s := newScenery(t)
	s.accountType = "account"
	info := event.Change{
		Key: event.Key{Cluster: "team", GroupResource: kinds.AccountInfos().GroupResource, Name: "account"}, UID: "i", ResourceVersion: "7",
		Object: []byte(`{"metadata":{"name":"account"},"spec":{"account":{"name":"a","originClusterId":"local"},"organization":{"name":"a","originClusterId":"local"}}}`),
	}
	expect := func(tuples int) {
		t.Helper()
		if err := s.view.Apply(t.Context(), info); err != nil {
			t.Fatal(err)
		}
		if got := s.Keys(info.Key); !slices.Equal(got, []Key{{StoreID: "S1"}}) {
			t.Errorf("it touches %v", got)
		}
		o, _ := s.lookUp(event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "a"})
		if len(o.Declared) != tuples {
			t.Errorf("the Store declares %v", o.Declared)
		}
	}
	expect(2)
	info.Deleted, info.ResourceVersion = true, "8"
	expect(0)
}
