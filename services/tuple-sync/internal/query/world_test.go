package query

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/openfga/language/pkg/go/transformer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/tuple-sync/declared"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
)

const docs = `model
  schema 1.1
type user
type doc
  relations
    define viewer: [user, user with large]
condition large(size: int) {
  size > 10
}
`

// queryFixture holds the data of a server, with the Store "a", whose OpenFGA store is S1.
type queryFixture struct {
	t     *testing.T
	view  *informer.Informer
	state *declared.State
	model *plan.Model
	count int64
}

//nolint:gochecknoglobals // Fixtures that no test changes.
var (
	one = corev1alpha1.Tuple{Object: "doc:1", Relation: "viewer", User: "user:1"}
	two = corev1alpha1.Tuple{Object: "doc:2", Relation: "viewer", User: "user:2"}
)

func newQueryFixture(t *testing.T, tuples ...corev1alpha1.Tuple) *queryFixture {
	t.Helper()
	m, err := transformer.TransformDSLToProto(docs)
	if err != nil {
		t.Fatal(err)
	}
	m.Id = "model"
	model, err := plan.NewModel(m)
	if err != nil {
		t.Fatal(err)
	}
	v := informer.New(informer.Config{Log: slog.New(slog.DiscardHandler)})
	w := &queryFixture{t: t, view: v, state: declared.NewState(v, event.Key{}, ""), model: model}
	w.store("a", corev1alpha1.StoreStatus{StoreID: "S1", AuthorizationModelID: "model"}, tuples...)
	return w
}

// Get implements [ModelReader].
func (w *queryFixture) Get(_ context.Context, storeID, _ string) (*plan.Model, error) {
	if storeID == "" {
		return nil, nil //nolint:nilnil // No model is an answer.
	}
	return w.model, nil
}

// server answers from w and openFGA.
func (w *queryFixture) server(openFGA OpenFGAClient) *Server {
	return New(Config{State: w.state, Cluster: "local", Complete: func() error { return nil }, Models: w, OpenFGA: openFGA, ListLimits: ListLimits{Deadline: time.Minute, Results: 1000}})
}

// store declares tuples. They are written as far as the status says.
func (w *queryFixture) store(name string, status corev1alpha1.StoreStatus, tuples ...corev1alpha1.Tuple) {
	w.t.Helper()
	status.ManagedTuplesStoreID = status.StoreID
	status.Conditions = conditions(corev1alpha1.ModelSynced)
	w.tell(kinds.Stores(), name, func(m metav1.ObjectMeta) any {
		return corev1alpha1.Store{ObjectMeta: m, Spec: corev1alpha1.StoreSpec{Tuples: tuples}, Status: status}
	})
}

// module declares tuples, some of which are written.
func (w *queryFixture) module(name, store string, written []corev1alpha1.Tuple, tuples ...corev1alpha1.Tuple) {
	w.t.Helper()
	w.tell(kinds.AuthorizationModels(), name, func(m metav1.ObjectMeta) any {
		return corev1alpha1.AuthorizationModel{
			ObjectMeta: m, Spec: corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: store}, Tuples: tuples},
			Status: corev1alpha1.AuthorizationModelStatus{ManagedTuples: written, StoreID: "S1", Conditions: conditions(corev1alpha1.Merged)},
		}
	})
}

func conditions(module string) []metav1.Condition {
	return []metav1.Condition{
		{Type: module, Status: metav1.ConditionTrue, ObservedGeneration: 1},
		{Type: corev1alpha1.TuplesSynced, Status: metav1.ConditionTrue, Reason: plan.Synced, ObservedGeneration: 1},
	}
}

// remove deletes a module without its finalizer.
func (w *queryFixture) remove(name string) {
	w.t.Helper()
	w.count++
	key := event.Key{Cluster: "local", GroupResource: kinds.AuthorizationModels().GroupResource, Name: name}
	last, _ := w.state.Models.GetOrTombstone(key)
	data, err := json.Marshal(last.Value)
	if err != nil {
		w.t.Fatal(err)
	}
	c := event.Change{Key: key, UID: name, Generation: 1, ResourceVersion: strconv.FormatInt(w.count, 10), Object: data, Deleted: true}
	if err := w.view.Apply(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *queryFixture) tell(kind kinds.Kind, name string, object func(metav1.ObjectMeta) any) {
	w.t.Helper()
	w.count++
	data, err := json.Marshal(object(metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(w.count, 0)}))
	if err != nil {
		w.t.Fatal(err)
	}
	c := event.Change{
		Key: event.Key{Cluster: "local", GroupResource: kind.GroupResource, Name: name}, UID: name, Generation: 1,
		ResourceVersion: strconv.FormatInt(w.count, 10), Object: data,
	}
	if err := w.view.Apply(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}
