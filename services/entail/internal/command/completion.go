package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/entail-dev/entail/services/internal/kinds"
)

// Bounds of a completion. A completion neither fails nor blocks: names that do not arrive in time are left out.
const (
	completionTimeout = time.Second
	maxCompletions    = 2000
)

// nameCompleter returns the names that a shell may offer. They need not match the typed text.
type nameCompleter func(ctx context.Context, typed string) []string

// completeFirstArgument completes only the first argument.
func completeFirstArgument(cmd *cobra.Command, names nameCompleter) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names.completeArgument(cmd, args, typed)
	}
}

func registerFlagCompletion(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, complete) // It fails only for undefined flags.
}

// completeArgument is a [cobra.CompletionFunc]. It returns within completionTimeout, even if the kubeconfig starts a login that
// does not end.
func (o nameCompleter) completeArgument(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	found := make(chan []string, 1)
	go func() { found <- o(ctx, typed) }()
	select {
	case <-ctx.Done():
		return nil, cobra.ShellCompDirectiveNoFileComp
	case names := <-found:
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, typed) })
		directive := cobra.ShellCompDirectiveNoFileComp
		if len(names) > 0 && strings.HasSuffix(names[0], "/") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return names, directive
	}
}

// completeSubjectPrefix offers only the prefixes of subjects, because Kubernetes does not list users and groups.
func completeSubjectPrefix(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"user:", "group:", "serviceaccount:"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// kubeconfigCluster is the cluster of the kubeconfig, read with the rights of its user, as kubectl does.
type kubeconfigCluster struct {
	getenv func(string) string
}

func (c kubeconfigCluster) listNamespaceNames(ctx context.Context, _ string) []string {
	return c.listObjectNames(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), "")
}

// objectNameCompleter offers the objects of a kind in a namespace. It takes a pointer, because flags are read later.
func (c kubeconfigCluster) objectNameCompleter(kind kinds.Kind, namespace *string) nameCompleter {
	return func(ctx context.Context, _ string) []string {
		return c.listObjectNames(ctx, kind.GroupVersionResource(), *namespace)
	}
}

// objectArgumentCompleter offers KIND/ for all kinds that services use, then KIND/NAME, as [parseObjectArgument] reads them.
func (c kubeconfigCluster) objectArgumentCompleter(namespace *string) nameCompleter {
	return func(ctx context.Context, typed string) []string {
		var names []string
		for _, kind := range kinds.ConsumedKinds() {
			prefix, in := strings.ToLower(kind.Kind)+"/", *namespace
			if kind.ClusterScoped {
				in = ""
			}
			if !strings.HasPrefix(typed, prefix) {
				names = append(names, prefix)
				continue
			}
			names = c.listObjectNames(ctx, kind.GroupVersionResource(), in)
			for i := range names {
				names[i] = prefix + names[i]
			}
			return names
		}
		return names
	}
}

// roleNameCompleter offers NAME and clusterrole/NAME, as [parseRole] reads them.
func (c kubeconfigCluster) roleNameCompleter(namespace *string) nameCompleter {
	return func(ctx context.Context, typed string) []string {
		const prefix = "clusterrole/"
		var names []string
		if !strings.HasPrefix(typed, prefix) {
			names = c.listObjectNames(ctx, kinds.Roles().GroupVersionResource(), *namespace)
		}
		if strings.HasPrefix(typed, prefix) || strings.HasPrefix(prefix, typed) {
			for _, name := range c.listObjectNames(ctx, kinds.ClusterRoles().GroupVersionResource(), "") {
				names = append(names, prefix+name)
			}
		}
		return names
	}
}

// listObjectNames returns at most maxCompletions names, and none if the list fails.
func (c kubeconfigCluster) listObjectNames(ctx context.Context, resource schema.GroupVersionResource, namespace string) []string {
	config, err := clientcmd.NewDefaultClientConfig(*loadKubeconfig(c.getenv), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil
	}
	config.WarningHandler = rest.NoWarnings{}
	if config.ExecProvider != nil {
		config.ExecProvider.StdinUnavailable = true
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil
	}
	list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: maxCompletions})
	if err != nil {
		return nil
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].GetName()
	}
	return names
}
