package declared

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// stateFeeder feeds a state with objects.
type stateFeeder struct {
	t     *testing.T
	view  *informer.Informer
	state *State
	count int
}

func newStateFeeder(t *testing.T, accountType string) *stateFeeder {
	t.Helper()
	v := informer.New(informer.Config{Log: slog.New(slog.DiscardHandler)})
	return &stateFeeder{t: t, view: v, state: NewState(v, event.Key{}, accountType)}
}

func keyOf(kind kinds.Kind, name string) event.Key {
	return event.Key{Cluster: "local", GroupResource: kind.GroupResource, Name: name}
}

func (b *stateFeeder) tell(key event.Key, object any, deleted bool) {
	b.t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		b.t.Fatal(err)
	}
	b.count++
	c := event.Change{Key: key, UID: key.Name, ResourceVersion: strconv.Itoa(b.count), Deleted: deleted, Object: data}
	if err := b.view.Apply(b.t.Context(), c); err != nil {
		b.t.Fatal(err)
	}
}

// withoutDuplicates returns keys without duplicates, which the engine drops.
func withoutDuplicates(keys []Key) []Key {
	var all []Key
	for _, k := range keys {
		if !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return all
}

func TestAffectedKeysIncludeEveryStore(t *testing.T) {
	store, module := keyOf(kinds.Stores(), "a"), keyOf(kinds.AuthorizationModels(), "m")
	one := []corev1alpha1.Tuple{{Object: "doc:1", Relation: "viewer", User: "user:1"}}
	recorded := func(id string) corev1alpha1.StoreStatus {
		return corev1alpha1.StoreStatus{ManagedTuples: one, ManagedTuplesStoreID: id}
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
		"a Store that got another store":          {store: corev1alpha1.StoreStatus{StoreID: "S", ManagedTuples: one, ManagedTuplesStoreID: "L"}, of: store, want: []Key{{StoreID: "L"}, {StoreID: "S"}}},
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
			b := newStateFeeder(t, "")
			b.tell(store, corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: c.store}, c.gone == "a")
			b.tell(module, corev1alpha1.AuthorizationModel{
				ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: c.ref}},
				Status: corev1alpha1.AuthorizationModelStatus{ManagedTuples: c.module.ManagedTuples, StoreID: c.module.ManagedTuplesStoreID},
			}, c.gone == "m")
			if got := withoutDuplicates(b.state.AffectedKeys(c.of)); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAffectedKeysOfReferenceToOtherCluster(t *testing.T) {
	b := newStateFeeder(t, "")
	store, module := keyOf(kinds.Stores(), "a"), keyOf(kinds.AuthorizationModels(), "m")
	b.tell(store, corev1alpha1.Store{Status: corev1alpha1.StoreStatus{StoreID: "S"}}, false)
	b.tell(module, corev1alpha1.AuthorizationModel{Spec: corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: "a", Cluster: "far"}}}, false)
	if got := withoutDuplicates(b.state.AffectedKeys(module)); !slices.Equal(got, []Key{{Owner: module}}) {
		t.Errorf("got %v", got)
	}
	if got := withoutDuplicates(b.state.AffectedKeys(store)); !slices.Equal(got, []Key{{StoreID: "S"}}) {
		t.Errorf("the Store touches %v", got)
	}
}

func TestAffectedKeysOfAccountInfo(t *testing.T) {
	b := newStateFeeder(t, "account")
	store := keyOf(kinds.Stores(), "a")
	b.tell(store, corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1alpha1.StoreStatus{StoreID: "S1"}}, false)
	info := event.Key{Cluster: "team", GroupResource: kinds.AccountInfos().GroupResource, Name: "account"}
	account := corev1alpha1.AccountLocation{Name: "a", OriginCluster: "local"}
	for _, deleted := range []bool{false, true} {
		b.tell(info, corev1alpha1.AccountInfo{
			ObjectMeta: metav1.ObjectMeta{Name: "account"}, Spec: corev1alpha1.AccountInfoSpec{Account: account, Organization: account},
		}, deleted)
		if got := withoutDuplicates(b.state.AffectedKeys(info)); !slices.Equal(got, []Key{{StoreID: "S1"}}) {
			t.Errorf("it touches %v", got)
		}
		o, _ := b.state.findObject(store)
		if want := map[bool]int{false: 2, true: 0}[deleted]; len(o.Declared) != want {
			t.Errorf("the Store declares %v", o.Declared)
		}
	}
}
