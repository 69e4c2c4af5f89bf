package opensearchsync

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// feededState is a state filled with test events.
type feededState struct {
	*state
	t       *testing.T
	view    *informer.Informer
	version int
}

func newFeededState(t *testing.T) *feededState {
	t.Helper()
	v := informer.New(informer.Config{Cluster: "local", Log: slog.New(slog.DiscardHandler)})
	return &feededState{newState(v, false), t, v, 0}
}

// of applies an event about an object: its present state, or its deletion if gone is true.
func (w *feededState) of(kind kinds.Kind, o metav1.Object, gone bool) event.Change {
	w.t.Helper()
	w.version++
	o.SetNamespace("default")
	o.SetResourceVersion(fmt.Sprint(w.version))
	data, err := json.Marshal(o)
	if err != nil {
		w.t.Fatal(err)
	}
	c := event.Change{
		Key: event.Key{Cluster: "local", GroupResource: kind.GroupResource, Namespace: "default", Name: o.GetName()}, UID: string(o.GetUID()),
		ResourceVersion: o.GetResourceVersion(), Deleted: gone, Object: data, ObservedAt: time.Now(), ExpiresAt: time.Now().Add(topology.TombstoneTTL),
	}
	w.tell(c)
	return c
}

func (w *feededState) tell(c event.Change) {
	w.t.Helper()
	if err := w.view.Apply(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}
}

func userNamed(name string) *opensearchv1.OpensearchUser {
	u := &opensearchv1.OpensearchUser{ObjectMeta: named(name)}
	u.Spec.OpensearchCluster.Name = "search"
	return u
}

// bound is the largest allowed number of values when none is needed any more.
const bound = 2 * minMemory

func TestPerObjectCacheDropsUnknownObjects(t *testing.T) {
	w := newFeededState(t)
	rivals := newForeignWriterDetector(time.Now, w.isLiveUID)
	stays := userNamed("stays")
	w.of(kinds.OpenSearchUsers(), stays, false)
	rivals.recordOwnWrite(event.Change{Key: w.key("stays"), UID: "uid-stays"}, *role("", true).value.CommonStatus())
	for i := range 5 * bound {
		name := fmt.Sprint("u-", i)
		w.markCleared(declaredObject{Change: event.Change{Key: w.key(name), UID: name}}, nil) // The informer no longer holds the object.
		rivals.recordOwnWrite(event.Change{Key: w.key(name), UID: name}, *role("", true).value.CommonStatus())
	}
	if n := len(w.cleared.of); n > bound {
		t.Errorf("%d objects that are long gone are remembered as cleared", n)
	}
	if n := len(rivals.struck.of); n > bound {
		t.Errorf("%d objects that are long gone are remembered as ours", n)
	}
	overwritten := declaredObject{Change: event.Change{Key: w.key("stays"), UID: "uid-stays"}, value: stays}
	if !rivals.markForeignWritten([]declaredObject{overwritten}, ownDefinitions) {
		t.Error("whose status was ours is forgotten while it is there")
	}
}

// key returns the key of a user.
func (w *feededState) key(name string) event.Key {
	return event.Key{Cluster: "local", GroupResource: kinds.OpenSearchUsers().GroupResource, Namespace: "default", Name: name}
}

func TestMarkClearedLastsUntilObjectReturns(t *testing.T) {
	w := newFeededState(t)
	w.of(kinds.OpenSearchClusters(), &opensearchv1.OpenSearchCluster{ObjectMeta: named("search")}, false)
	users := Key{clusterKey("local", "default", "search"), plan.Users}
	gone := func() []declaredObject {
		_, all := w.runInput(users)
		return all
	}
	for i := range bound {
		w.of(kinds.OpenSearchUsers(), userNamed(fmt.Sprint("u-", i)), true)
	}
	for _, o := range gone() {
		w.markCleared(o, nil)
	}
	if left := gone(); len(left) > 0 {
		t.Errorf("%d are looked at again, such as %s", len(left), left[0].Key)
	}
	again := w.of(kinds.OpenSearchUsers(), userNamed("u-0"), false)
	again.Epoch = "2" // The cluster was rewound to a time before the deletion.
	w.tell(again)
	again.Deleted = true
	w.tell(again)
	if left := gone(); len(left) != 1 || left[0].Key.Name != "u-0" {
		t.Errorf("of one that was there once more is left %v", left)
	}
}

func TestClusterIsNeededWhileRecordsNameIt(t *testing.T) {
	w := newFeededState(t)
	cluster := &opensearchv1.OpenSearchCluster{ObjectMeta: named("search")}
	user := userNamed("anna")
	user.Status.ManagedCluster = string(cluster.UID)
	for name, step := range map[string]struct {
		cluster, user, want bool
	}{
		"both are there":             {true, true, true},
		"the cluster alone is there": {true, false, true},
		"the user alone is there":    {false, true, true},
		"neither is there":           {false, false, false},
	} {
		w.of(kinds.OpenSearchClusters(), cluster, !step.cluster)
		w.of(kinds.OpenSearchUsers(), user, !step.user)
		if w.isClusterNeeded(string(cluster.UID)) != step.want {
			t.Errorf("%s: needed is %t", name, !step.want)
		}
	}
}
