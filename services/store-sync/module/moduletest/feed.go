// Package moduletest fills an informer by hand, for tests of its readers.
package moduletest

import (
	"encoding/json"
	"log/slog"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Cluster is the cluster to which the service under test writes.
const Cluster = "local"

// InformerFeeder puts objects into an informer.
type InformerFeeder struct {
	View *informer.Informer
	T    testing.TB

	version int
}

// NewInformerFeeder returns a feed with an empty informer.
func NewInformerFeeder(t testing.TB) *InformerFeeder {
	t.Helper()
	return &InformerFeeder{View: informer.New(informer.Config{Log: slog.New(slog.DiscardHandler)}), T: t}
}

// PutObject stores a new state of an object.
func (f *InformerFeeder) PutObject(kind kinds.Kind, cluster, name string, object any, edit ...func(*event.Change)) event.Key {
	f.T.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		f.T.Fatal(err)
	}
	f.version++
	c := event.Change{
		Key: event.Key{Cluster: cluster, GroupResource: kind.GroupResource, Name: name}, UID: name,
		ResourceVersion: strconv.Itoa(f.version), Object: data, Epoch: "e",
	}
	for _, e := range edit {
		e(&c)
	}
	if err := f.View.Apply(f.T.Context(), c); err != nil {
		f.T.Fatal(err)
	}
	return c.Key
}

// MarkDeleted marks a change as a deletion.
func MarkDeleted(c *event.Change) { c.Deleted = true }

// PutStore puts a Store with an OpenFGA store.
func (f *InformerFeeder) PutStore(cluster, name, id string) event.Key {
	f.T.Helper()
	return f.PutObject(kinds.Stores(), cluster, name, corev1alpha1.Store{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1alpha1.StoreStatus{StoreID: id},
	})
}

// NewModel returns an AuthorizationModel that refers to a Store.
func NewModel(name string, ref corev1alpha1.StoreRef) corev1alpha1.AuthorizationModel {
	return corev1alpha1.AuthorizationModel{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1alpha1.AuthorizationModelSpec{StoreRef: ref}}
}
