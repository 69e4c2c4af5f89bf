//go:build integration

package testenv

import (
	"context"
	"errors"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/rbac"
	"github.com/entail-dev/entail/services/internal/topology"
)

func client(t *testing.T, k *KubeServer) *kube.Client {
	t.Helper()
	client, err := kube.New(k.ServiceConfig(t, topology.StoreSync), "local", "test-service")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// createStoreWithFinalizer creates a Store with a finalizer.
func createStoreWithFinalizer(t *testing.T, k *KubeServer, client *kube.Client, name string) event.Change {
	t.Helper()
	k.Apply(t, kinds.Stores(), name, corev1alpha1.StoreSpec{CoreModule: "module core"})
	obj, err := client.Get(t.Context(), kinds.Stores(), "", name)
	if err != nil {
		t.Fatal(err)
	}
	if obj, err = client.AddFinalizer(t.Context(), kinds.Stores(), obj, corev1alpha1.StoreFinalizer); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestKubeServerIsCleanedBetweenTests(t *testing.T) {
	t.Run("leaves a mess", func(t *testing.T) {
		k := StartKube(t)
		client := client(t, k)
		createStoreWithFinalizer(t, k, client, "held")
		createStoreWithFinalizer(t, k, client, "deleted")
		if err := k.DynamicClient(t).Resource(kinds.Stores().GroupVersionResource()).Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		k.Apply(t, kinds.AuthorizationModels(), "module", corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: "held"}})
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "leader", Namespace: "default"}}
		if _, err := k.TypedClient(t).CoordinationV1().Leases("default").Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("finds none", func(t *testing.T) {
		k := StartKube(t)
		for _, kind := range kinds.ConsumedKinds() {
			if kind.Optional || kind == kinds.CustomResourceDefinitions() {
				continue // not served, or present from the start
			}
			list, err := k.DynamicClient(t).Resource(kind.GroupVersionResource()).List(t.Context(), metav1.ListOptions{LabelSelector: "!" + bootstrapped + ",!" + shipped})
			if err != nil || len(list.Items) != 0 {
				t.Errorf("%s: %v, %v; want none", kind.Resource, list, err)
			}
		}
		if _, err := k.TypedClient(t).CoordinationV1().Leases("default").Get(t.Context(), "leader", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the lease: %v; want none", err)
		}
	})
}

func TestKubeTrafficCountsWritesOnly(t *testing.T) {
	k := StartKube(t)
	client := client(t, k)
	obj := createStoreWithFinalizer(t, k, client, "demo")
	const patch = "PATCH /apis/core.platform-mesh.io/v1alpha1/stores/demo"
	if got := k.WritesByOp(); k.Writes() != 1 || got[patch] != 1 {
		t.Errorf("counted %v; want the finalizer", got)
	}
	if err := client.RecordEvent(t.Context(), obj, condition.EventContent{Reason: "Told"}); err != nil {
		t.Fatal(err)
	}
	counted, err := kubernetes.NewForConfig(k.ServiceConfig(t, topology.Watcher))
	if err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "leader"}}
	if _, err := counted.CoordinationV1().Leases(rbac.Namespace).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if k.Writes() != 1 {
		t.Errorf("counted %v; want neither event nor lease", k.WritesByOp())
	}
}

func TestKubeTrafficInjectsFaults(t *testing.T) {
	k := StartKube(t)
	client := client(t, k)
	broken := errors.New("broken on purpose")
	k.FailBefore(func(context.Context, string) error { return broken })
	if _, err := client.Get(t.Context(), kinds.Stores(), "", "absent"); !errors.Is(err, broken) {
		t.Errorf("before: %v; want %v", err, broken)
	}
	k.FailBefore(nil)
	k.FailAfter(func(context.Context, string) error { return broken })
	if _, err := client.Get(t.Context(), kinds.Stores(), "", "absent"); !errors.Is(err, broken) {
		t.Errorf("after: %v; want %v", err, broken)
	}
}
