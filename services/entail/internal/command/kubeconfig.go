package command

import (
	"cmp"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/homedir"
)

// bindNamespaceFlag defines -n. Its default is the namespace of the kubeconfig, as with kubectl.
func bindNamespaceFlag(cmd *cobra.Command, getenv func(string) string, namespace *string, usage string) {
	cmd.Flags().StringVarP(namespace, "namespace", "n", currentNamespace(getenv), usage)
	registerFlagCompletion(cmd, "namespace", nameCompleter(kubeconfigCluster{getenv}.listNamespaceNames).completeArgument)
}

// bindNamespaceFlags defines -n and -A. With -A the namespace is empty, which means all namespaces.
func bindNamespaceFlags(cmd *cobra.Command, getenv func(string) string, namespace *string, usage string) {
	bindNamespaceFlag(cmd, getenv, namespace, usage)
	cmd.Flags().BoolFuncP("all-namespaces", "A", "all namespaces", func(value string) error {
		all, err := strconv.ParseBool(value)
		if all {
			*namespace = ""
		}
		return err
	})
	cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
}

// currentNamespace returns the namespace of the current context, or "default".
func currentNamespace(getenv func(string) string) string {
	config := loadKubeconfig(getenv)
	if current := config.Contexts[config.CurrentContext]; current != nil {
		return cmp.Or(current.Namespace, "default")
	}
	return "default"
}

// loadKubeconfig returns the configuration of kubectl; it is empty if none can be read.
func loadKubeconfig(getenv func(string) string) *clientcmdapi.Config {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(getenv(clientcmd.RecommendedConfigPathEnvVar))}
	if len(rules.Precedence) == 0 {
		rules.Precedence = []string{filepath.Join(cmp.Or(getenv("HOME"), homedir.HomeDir()), clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)}
	}
	config, err := rules.Load()
	if err != nil {
		return clientcmdapi.NewConfig()
	}
	return config
}
