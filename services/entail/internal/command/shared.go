package command

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/deploy"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// listSharedObjects lists objects that uninstall leaves behind although services act on them. These are all objects of
// kinds that other software applied as well, and objects of foreign kinds that carry a finalizer of Entail.
func listSharedObjects(ctx context.Context, client dynamic.Interface) (theirs []remainingObject, err error) {
	_, shared, err := devserver.InstalledCRDs(ctx, client, deploy.Files)
	if err != nil {
		return nil, err
	}
	if theirs, err = listObjectsOfKinds(ctx, client, shared); err != nil {
		return nil, err
	}
	for _, kind := range append(kinds.LegacyOpenSearchKinds(), kinds.APIBindings()) {
		list, err := client.Resource(kind.GroupVersionResource()).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // The kind is not served.
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.GroupResource, err)
		}
		for _, object := range list.Items {
			if slices.Contains(object.GetFinalizers(), opensearchv1.Finalizer) || slices.Contains(object.GetFinalizers(), corev1alpha1.BindingFinalizer) {
				theirs = append(theirs, remainingObject{kind.GroupVersionResource(), object})
			}
		}
	}
	return theirs, nil
}

// sharedObjectsError returns the error that uninstall removed nothing, with the objects and what to do.
func sharedObjectsError(theirs []remainingObject) error {
	return fmt.Errorf(`%w: other software also uses these kinds, and there are %s, which may have finalizers of Entail:
%s
Nothing was removed. Delete the objects while the services run. Or remove the finalizers yourself, and give --leave-shared`,
		exit.ErrUsage, countsByKindText(theirs), objectLines(theirs))
}
