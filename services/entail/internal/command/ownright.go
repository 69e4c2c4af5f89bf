package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/entail-dev/entail/services/internal/kinds"
)

// errNotYou makes a preview fail if its caller may not make the change.
var errNotYou = errors.New("the API server would refuse you")

// dryRunWrite is one change to preview: an object to create, fields to change, or an object to delete.
type dryRunWrite struct {
	kind   kinds.Kind
	name   string
	fields map[string]any
	remove bool
}

// checkByDryRun sends each write to the API server as a dry run, with the rights of the caller. All admission applies,
// to each write as if it came alone. A refused write is an error. If the answer is unknown, the command prints so and
// succeeds. Without a kubeconfig it does nothing.
func (c kubeconfigCluster) checkByDryRun(cmd *cobra.Command, namespace string, writes []dryRunWrite) error {
	if loadKubeconfig(c.getenv).CurrentContext == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), defaultTimeout)
	defer cancel()
	objects, unknown := c.newDynamicClient()
	if unknown == nil {
		for _, w := range writes {
			err := w.sendDryRun(ctx, objects.Resource(w.kind.GroupVersionResource()).Namespace(namespace))
			if refusal := apierrors.APIStatus(nil); errors.As(err, &refusal) && isFinalRefusal(refusal.Status().Code) {
				return fmt.Errorf("%w: %s %s: %s", errNotYou, w.kind.Kind, w.name, refusal.Status().Message)
			}
			unknown = cmp.Or(unknown, err)
		}
	}
	if unknown != nil {
		cmd.PrintErrf("Not checked whether you may do this: %v\n", unknown)
		return nil
	}
	cmd.PrintErrln("You may do this.")
	return nil
}

// isFinalRefusal reports whether the status code is a final refusal: another attempt with the same rights would fail, too.
func isFinalRefusal(code int32) bool {
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError &&
		!slices.Contains([]int32{http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests}, code)
}

func (c kubeconfigCluster) newDynamicClient() (dynamic.Interface, error) {
	config, err := clientcmd.NewDefaultClientConfig(*loadKubeconfig(c.getenv), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{}
	return dynamic.NewForConfig(config)
}

// sendDryRun patches the object, and creates it if the patch finds no object or is forbidden. A caller may have only one of
// the two rights, and a change may gain less than the whole object gives.
func (w dryRunWrite) sendDryRun(ctx context.Context, objects dynamic.ResourceInterface) error {
	all := []string{metav1.DryRunAll}
	if w.remove {
		return objects.Delete(ctx, w.name, metav1.DeleteOptions{DryRun: all})
	}
	patch, err := json.Marshal(w.fields)
	if err != nil {
		return err
	}
	_, err = objects.Patch(ctx, w.name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: all})
	if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return err
	}
	object := maps.Clone(w.fields)
	object["apiVersion"], object["kind"], object["metadata"] = w.kind.GroupVersionResource().GroupVersion().String(), w.kind.Kind,
		map[string]any{"name": w.name}
	_, made := objects.Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{DryRun: all})
	if apierrors.IsAlreadyExists(made) {
		return err
	}
	return made
}
