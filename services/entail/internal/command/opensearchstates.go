package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/entail-dev/entail/services/internal/kinds"
)

// openSearchKinds returns the kinds whose objects are applied to OpenSearch.
func openSearchKinds() []kinds.Kind {
	return []kinds.Kind{
		kinds.OpenSearchUsers(), kinds.OpenSearchRoles(), kinds.OpenSearchBindings(), kinds.OpenSearchTenants(), kinds.OpenSearchActionGroups(),
	}
}

// printOpenSearchStates prints how many objects of each OpenSearch kind are in each state, with the rights of the caller. It
// prints nothing for a kind without objects, and a note without a kubeconfig. The error means that a kind could not be read,
// which is printed.
func (c kubeconfigCluster) printOpenSearchStates(cmd *cobra.Command) (incomplete error) {
	if loadKubeconfig(c.getenv).CurrentContext == "" {
		cmd.Println("Not checked without a kubeconfig: modules with an invalid edit, and objects of OpenSearch.")
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), defaultTimeout)
	defer cancel()
	for _, kind := range openSearchKinds() {
		states, err := c.countOpenSearchStates(ctx, kind)
		var words []string
		for _, state := range slices.Sorted(maps.Keys(states)) {
			words = append(words, fmt.Sprintf("%d %s", states[state], state))
		}
		switch {
		case apierrors.IsNotFound(err): // The kind is not installed.
		case err != nil:
			cmd.PrintErrf("The states of %s are not known: %v\n", kind.Resource, err)
			incomplete = errTruncated
		case len(words) > 0:
			cmd.Printf("%s: %s\n", kind.Resource, strings.Join(words, ", "))
		}
	}
	return incomplete
}

func (c kubeconfigCluster) countOpenSearchStates(ctx context.Context, kind kinds.Kind) (states map[string]int, err error) {
	objects, err := c.newDynamicClient()
	if err != nil {
		return nil, err
	}
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return objects.Resource(kind.GroupVersionResource()).List(ctx, options)
	}
	states = map[string]int{}
	return states, pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		u, _ := o.(*unstructured.Unstructured)
		state, _, err := unstructured.NestedString(u.Object, "status", "state")
		states[cmp.Or(state, "not seen yet")]++
		return err
	})
}
