package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/deploy"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/devserver"
)

const (
	// uninstallPoll is the time between two lists of the remaining objects.
	uninstallPoll = 500 * time.Millisecond
	// maxStuck bounds how many remaining objects an error names.
	maxStuck = 20
)

func newUninstallCommand() *cobra.Command {
	var kubeconfig string
	var what uninstallOptions
	timeout := 5 * time.Minute
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove from a cluster everything that install applied",
		Long: `uninstall deletes the kinds, admission policies, roles and accounts that install applies. You must be an
administrator of the cluster. Run it while the services run, and stop them afterwards.

If objects of the kinds exist, uninstall lists them and changes nothing. With --delete-objects it deletes them
first, and waits until the services have removed what they made in OpenFGA, OpenSearch and Kubernetes.

Kinds that other software also applied stay, with their objects. While the services act on such objects, uninstall
changes nothing. With --leave-shared you take care of these objects and their finalizers yourself.

The namespace entail-system stays, with its Secrets and volumes.`,
		Example: "  entail uninstall\n  entail uninstall --delete-objects",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig `file` of the cluster (default as kubectl, or in-cluster)")
	cmd.Flags().BoolVar(&what.deleteObjects, "delete-objects", false, "first delete all objects of the kinds, in all namespaces")
	cmd.Flags().BoolVar(&what.leaveShared, "leave-shared", false,
		"continue although objects of kinds that other software also applied stay, with their finalizers")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "how long the services may take to remove finalizers")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := loadRESTConfig(kubeconfig)
		if err != nil {
			return err
		}
		cfg.QPS = -1 // There are dozens of requests, and a user waits.
		client, err := dynamic.NewForConfig(cfg)
		if err != nil {
			return fmt.Errorf("preparing to talk to the API server: %w", err)
		}
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("not done after %s (--timeout)", timeout))
		defer cancel()
		if err := what.removeOwnObjects(ctx, client); err != nil {
			return err
		}
		if err := devserver.RemoveManifests(cmd.Context(), cfg, deploy.Files); err != nil {
			return err
		}
		cmd.Println("removed kinds, policies of admission, roles for people and accounts of services")
		return nil
	}
	return cmd
}

// uninstallOptions holds the flags that allow deletions, or leave shared objects behind.
type uninstallOptions struct{ deleteObjects, leaveShared bool }

// removeOwnObjects returns once no objects of Entail's own kinds exist. Without --delete-objects, existing objects are an error.
func (r uninstallOptions) removeOwnObjects(ctx context.Context, client dynamic.Interface) error {
	theirs, err := listSharedObjects(ctx, client)
	if err != nil {
		return err
	}
	if len(theirs) > 0 && !r.leaveShared {
		return sharedObjectsError(theirs)
	}
	left, err := listOwnObjects(ctx, client)
	if err != nil {
		return err
	}
	if len(left) > 0 && !r.deleteObjects {
		return fmt.Errorf("%w: there are %s: delete them, or give --delete-objects", exit.ErrUsage, countsByKindText(left))
	}
	return deleteUntilGone(ctx, client, left)
}

// remainingObject is an existing object that uninstall has to consider.
type remainingObject struct {
	resource schema.GroupVersionResource
	object   unstructured.Unstructured
}

// String returns the name of the object, and its finalizers.
func (l remainingObject) String() string {
	text := fmt.Sprintf("%s %s", l.resource.GroupResource(), strings.TrimPrefix(l.object.GetNamespace()+"/"+l.object.GetName(), "/"))
	if held := l.object.GetFinalizers(); len(held) > 0 {
		text += ", held by " + strings.Join(held, ", ")
	}
	return text
}

// listOwnObjects lists all objects of kinds that only Entail applies.
func listOwnObjects(ctx context.Context, client dynamic.Interface) ([]remainingObject, error) {
	own, _, err := devserver.InstalledCRDs(ctx, client, deploy.Files)
	if err != nil {
		return nil, err
	}
	return listObjectsOfKinds(ctx, client, own)
}

// listObjectsOfKinds lists all objects of the kinds in these definitions.
func listObjectsOfKinds(ctx context.Context, client dynamic.Interface, definitions []*unstructured.Unstructured) (all []remainingObject, err error) {
	for _, u := range definitions {
		resource, err := storageVersionResource(u)
		if err != nil {
			return nil, err
		}
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
		}
		for _, object := range list.Items {
			all = append(all, remainingObject{resource, object})
		}
	}
	return all, nil
}

// storageVersionResource returns the resource of a definition, in the version that the API server stores.
func storageVersionResource(definition *unstructured.Unstructured) (of schema.GroupVersionResource, err error) {
	of.Group, _, _ = unstructured.NestedString(definition.Object, "spec", "group")
	of.Resource, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["storage"] == true {
			of.Version, _ = version["name"].(string)
		}
	}
	if of.Group == "" || of.Resource == "" || of.Version == "" {
		return of, fmt.Errorf("CustomResourceDefinition %s lacks a group, a plural or a stored version", definition.GetName())
	}
	return of, nil
}

// countsByKindText returns the number of objects of each kind, as text.
func countsByKindText(left []remainingObject) string {
	n := map[string]int{}
	for _, l := range left {
		n[l.resource.GroupResource().String()]++
	}
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(n)) {
		words = append(words, fmt.Sprintf("%d %s", n[kind], kind))
	}
	return strings.Join(words, ", ")
}

// deleteUntilGone deletes objects until none exists. It lists them again each time, because services may create more
// meanwhile.
func deleteUntilGone(ctx context.Context, client dynamic.Interface, left []remainingObject) (err error) {
	for len(left) > 0 {
		for _, l := range left {
			if l.object.GetDeletionTimestamp() != nil {
				continue
			}
			api := client.Resource(l.resource).Namespace(l.object.GetNamespace())
			if err := api.Delete(ctx, l.object.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("deleting %s: %w", l, err)
			}
		}
		if !backoff.Sleep(ctx, uninstallPoll) {
			return remainingObjectsError(ctx, left)
		}
		if left, err = listOwnObjects(ctx, client); err != nil {
			return err
		}
	}
	return nil
}

// remainingObjectsError returns the error that names the remaining objects and their finalizers.
func remainingObjectsError(ctx context.Context, left []remainingObject) error {
	return fmt.Errorf("%w: %d objects are still there; do their services run? Nothing else was removed:\n%s", context.Cause(ctx), len(left), objectLines(left))
}

// objectLines returns one line for each object, at most maxStuck.
func objectLines(objects []remainingObject) string {
	var names []string
	for _, o := range objects[:min(len(objects), maxStuck)] {
		names = append(names, o.String())
	}
	return strings.Join(names, "\n")
}
