package command

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// tellKept names the Stores and AuthorizationModels of which an earlier text than their own is live: since when, why, and how to
// revoke what an edit took out of it. It asks with the rights of who asks, as kubectl does. Who has no kubeconfig asks nobody.
func (c cluster) tellKept(cmd *cobra.Command) {
	if kubeconfig(c.getenv).CurrentContext == "" {
		return
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), defaultTimeout)
	defer cancel()
	objects, err := c.objectsOf()
	if err == nil {
		err = cmp.Or(tellKeptOf[corev1alpha1.Store](ctx, cmd, objects, kinds.Stores()),
			tellKeptOf[corev1alpha1.AuthorizationModel](ctx, cmd, objects, kinds.AuthorizationModels()))
	}
	if err != nil {
		cmd.PrintErrf("Of whom an earlier text is live is not known: %v\n", err)
	}
}

// tellKeptOf does so for one kind.
func tellKeptOf[T any, P interface {
	*T
	Kept() *metav1.Condition
}](ctx context.Context, cmd *cobra.Command, objects dynamic.Interface, kind kinds.Kind) error {
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return objects.Resource(kind.Served()).List(ctx, options)
	}
	return pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		u, _ := o.(*unstructured.Unstructured)
		is := P(new(T))
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, is); err != nil {
			return err
		}
		if kept := is.Kept(); kept != nil {
			cmd.Printf("%s/%s: an earlier text is live since %s: %s\n",
				strings.ToLower(kind.Kind), u.GetName(), kept.LastTransitionTime.UTC().Format(time.RFC3339), kept.Message)
		}
		return nil
	})
}
