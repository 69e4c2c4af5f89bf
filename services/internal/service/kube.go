package service

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// newRESTConfig returns the configuration for the API server. It sends no request.
func newRESTConfig(name string, cfg Config) (*rest.Config, error) {
	found := cfg.Embed.Kube
	if found == nil {
		var err error
		if found, err = cfg.Kube.loadKubeconfig(); err != nil {
			return nil, err
		}
	}
	found = rest.CopyConfig(found)
	found.UserAgent = "entail-" + name
	return found, nil
}

func (k KubeConfig) loadKubeconfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: k.Context}
	found, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no kubeconfig found: use --kubeconfig, correct KUBECONFIG, or run in a cluster")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return found, nil
}
