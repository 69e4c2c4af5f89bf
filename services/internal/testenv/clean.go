package testenv

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Labels of objects that must not be removed: the default roles of the API server, and the shipped objects of
// services.
const (
	bootstrapped = "kubernetes.io/bootstrapping"
	shipped      = "app.kubernetes.io/part-of"
)

// removeLeftovers removes all objects of the kinds that services watch, and all leases, which would delay the leader
// of the next test. It repeats until no such object exists.
func removeLeftovers(ctx context.Context, objects dynamic.Interface) error {
	resources := []schema.GroupVersionResource{coordinationv1.SchemeGroupVersion.WithResource("leases")}
	for _, kind := range kinds.ConsumedKinds() {
		// Other kinds depend on their CustomResourceDefinitions.
		if kind.GroupResource != kinds.CustomResourceDefinitions().GroupResource {
			resources = append(resources, kind.GroupVersionResource())
		}
	}
	for _, r := range resources {
		for {
			left, err := deleteLeftovers(ctx, objects.Resource(r))
			if err != nil {
				return fmt.Errorf("cleaning %s: %w", r.Resource, err)
			}
			if left == 0 {
				break
			}
			if !backoff.Sleep(ctx, poll) {
				return fmt.Errorf("cleaning %s: %d objects left: %w", r.Resource, left, ctx.Err())
			}
		}
	}
	return nil
}

// deleteLeftovers deletes the objects of a resource and returns how many it found.
func deleteLeftovers(ctx context.Context, api dynamic.NamespaceableResourceInterface) (int, error) {
	list, err := api.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil // The kind is not served.
	}
	if err != nil {
		return 0, err
	}
	found := 0
	for _, u := range list.Items {
		if strings.HasPrefix(u.GetNamespace(), "kube-") || u.GetLabels()[bootstrapped] != "" || u.GetLabels()[shipped] == "entail" {
			continue
		}
		found++
		if err := forceDelete(ctx, api.Namespace(u.GetNamespace()), u); err != nil && !apierrors.IsNotFound(err) {
			return 0, err
		}
	}
	return found, nil
}

func forceDelete(ctx context.Context, api dynamic.ResourceInterface, u unstructured.Unstructured) error {
	if len(u.GetFinalizers()) > 0 {
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		if _, err := api.Patch(ctx, u.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return api.Delete(ctx, u.GetName(), metav1.DeleteOptions{})
}
