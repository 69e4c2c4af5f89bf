package command

import (
	"cmp"
	"path/filepath"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/homedir"
)

// bindNamespace makes -n a flag. Without it, the namespace is that of the kubeconfig, as with kubectl.
func bindNamespace(fs *pflag.FlagSet, getenv func(string) string, namespace *string, usage string) {
	fs.StringVarP(namespace, "namespace", "n", kubeNamespace(getenv), usage)
}

// kubeNamespace is the namespace of the current context; default where nothing names one.
func kubeNamespace(getenv func(string) string) string {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(getenv(clientcmd.RecommendedConfigPathEnvVar))}
	if len(rules.Precedence) == 0 {
		rules.Precedence = []string{filepath.Join(cmp.Or(getenv("HOME"), homedir.HomeDir()), clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)}
	}
	config, err := rules.Load()
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return "default"
	}
	return cmp.Or(config.Contexts[config.CurrentContext].Namespace, "default")
}
