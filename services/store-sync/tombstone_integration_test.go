//go:build integration

package storesync_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/testbed"
)

func TestAStoreThatLivesIsSparedWhateverTheBusTells(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	b.serve()
	b.applyStore("demo")
	id := b.await("demo", "ModelSynced=True/Merged").Status.StoreID
	b.Settled()
	bus := publish.New(b.JS)
	last, err := bus.Last(t.Context(), event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	wrong := last.Change
	wrong.Deleted = true
	if _, err := bus.Publish(t.Context(), wrong, last.Sequence, publish.Options{}); err != nil {
		t.Fatal(err)
	}
	b.Settled()
	if ids := b.named("demo"); !slices.Equal(ids, []string{id}) || b.OpenFGA.WritesByOp()["DeleteStore"] != 0 {
		t.Errorf("OpenFGA has %v, want %s kept", ids, id)
	}
}

// awaitLeft waits until people are told that an OpenFGA store is left, which must be there.
func (b *bed) awaitLeft(id string) {
	b.T.Helper()
	testbed.Eventually(b.T, soon, func() error {
		list, err := b.Objects.Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace("default").List(b.T.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		var told []string
		for _, u := range list.Items {
			message, _, _ := unstructured.NestedString(u.Object, "message")
			if reason, _, _ := unstructured.NestedString(u.Object, "reason"); reason == "StoreLeft" && strings.Contains(message, id) {
				return nil
			}
			told = append(told, message)
		}
		return fmt.Errorf("told are %q", told)
	})
	if ids := b.named("demo"); !slices.Equal(ids, []string{id}) || b.OpenFGA.WritesByOp()["DeleteStore"] != 0 {
		b.T.Errorf("OpenFGA has %v, want %s kept", ids, id)
	}
}

func TestAStoreOutlivedByUnfinishedSuccessorsIsToldOfAllTheSame(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	r := b.serve()
	b.applyStore("demo")
	id := b.await("demo", "ModelSynced=True/Merged").Status.StoreID
	b.Settled()
	r.Stop()
	b.Delete(kinds.Stores(), "demo")
	b.patch(`{"metadata":{"finalizers":null}}`)
	b.awaitGone("demo")
	for range 2 {
		b.applyStore("demo")
		b.Delete(kinds.Stores(), "demo")
		b.awaitGone("demo")
	}
	b.serve()
	b.awaitLeft(id)
}
