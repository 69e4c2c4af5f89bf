package storesync

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/store-sync/apimodule/discovery"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// desk is a view that is fed by hand.
type desk struct {
	*testing.T
	objects
	view    *view.View
	version int
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	v := view.New(view.Config{Log: slog.New(slog.DiscardHandler)})
	d := &desk{T: t, objects: newObjects(v, "local", discovery.Defaults(), nil), view: v}
	return d
}

func (d *desk) put(kind kinds.Kind, cluster, name string, object any, deleted bool) event.Key {
	d.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		d.Fatal(err)
	}
	d.version++
	c := event.Change{
		Key: event.Key{Cluster: cluster, GroupResource: kind.GroupResource, Name: name}, UID: name,
		ResourceVersion: strconv.Itoa(d.version), Object: data, Deleted: deleted, Epoch: "e",
	}
	if err := d.view.Apply(d.Context(), c); err != nil {
		d.Fatal(err)
	}
	return c.Key
}

func (d *desk) store(cluster, name, id string) event.Key {
	return d.put(kinds.Stores(), cluster, name, corev1alpha1.Store{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1alpha1.StoreStatus{StoreID: id},
	}, false)
}

func (d *desk) module(name string, ref corev1alpha1.StoreRef, deleted bool) event.Key {
	return d.put(kinds.AuthorizationModels(), "local", name, corev1alpha1.AuthorizationModel{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1alpha1.AuthorizationModelSpec{StoreRef: ref},
	}, deleted)
}

func storeKey(name string) event.Key {
	return event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: name}
}

func TestAnObjectTouchesTheStoresThatDependOnIt(t *testing.T) {
	d := newDesk(t)
	demo, other := d.store("local", "demo", "id1"), d.store("local", "other", "id2")
	twin, foreign := d.store("local", "twin", "id2"), d.store("east", "demo", "id3")
	tests := map[string]struct {
		object event.Key
		want   []event.Key
	}{
		"a Store":                             {demo, []event.Key{demo}},
		"a Store that shares its OpenFGA one": {other, []event.Key{other, twin}},
		"a Store elsewhere of the name":       {foreign, []event.Key{foreign, demo}},
		"a Store that nobody knows":           {storeKey("new"), []event.Key{storeKey("new")}},
		"a module":                            {d.module("a", corev1alpha1.StoreRef{Name: "demo"}, false), []event.Key{demo}},
		"a module of a Store elsewhere":       {d.module("b", corev1alpha1.StoreRef{Name: "demo", Cluster: "east"}, false), []event.Key{foreign}},
		"a module of no Store":                {d.module("c", corev1alpha1.StoreRef{Name: "none"}, false), []event.Key{storeKey("none")}},
		"a module that is gone":               {d.module("d", corev1alpha1.StoreRef{Name: "demo"}, true), []event.Key{demo}},
		"a module that nobody knows":          {event.Key{GroupResource: kinds.AuthorizationModels().GroupResource, Name: "x"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := d.Keys(test.object); !slices.Equal(got, test.want) {
				t.Errorf("touches %v, want %v", got, test.want)
			}
		})
	}
}

func TestAnInputHoldsWhatBelongsToTheStore(t *testing.T) {
	d := newDesk(t)
	demo := d.store("local", "demo", "id1")
	d.store("local", "twin", "id1")
	d.store("local", "holder", "id9")
	d.store("local", "stranger", "id2")
	d.store("east", "demo", "")
	d.module("mine", corev1alpha1.StoreRef{Name: "demo"}, false)
	d.module("named", corev1alpha1.StoreRef{Name: "demo", Cluster: "local"}, false)
	d.module("foreign", corev1alpha1.StoreRef{Name: "demo", Cluster: "east"}, false)
	d.module("gone", corev1alpha1.StoreRef{Name: "demo"}, true)
	in := d.input(demo, plan.Observed{Named: []plan.Store{{ID: "id9"}}})
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

func TestAStoreOfAnotherClusterIsNotOursToTouch(t *testing.T) {
	d := newDesk(t)
	foreign := d.store("east", "demo", "id1")
	d.module("guest", corev1alpha1.StoreRef{Name: "demo", Cluster: "east"}, false)
	in := d.input(foreign, plan.Observed{})
	if in.Store != nil || in.Gone != nil || len(in.Modules) != 1 {
		t.Errorf("input is %+v", in)
	}
	if a := plan.Next(in, plan.Observed{}); a.Verb != plan.WriteStatus {
		t.Errorf("we would %s", a.Verb)
	}
}

func TestADeletedStoreIsRemembered(t *testing.T) {
	d := newDesk(t)
	demo := d.store("local", "demo", "id1")
	d.put(kinds.Stores(), "local", "demo", corev1alpha1.Store{Status: corev1alpha1.StoreStatus{StoreID: "id1"}}, true)
	if in := d.input(demo, plan.Observed{}); in.Store != nil || in.Gone == nil || in.Gone.Status.StoreID != "id1" || !in.Change.Deleted {
		t.Errorf("input is %+v", in)
	}
}
