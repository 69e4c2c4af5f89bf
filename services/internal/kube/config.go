package kube

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// requestTimeout bounds one request; watches do not come through here.
const requestTimeout = 30 * time.Second

// Config loads the kubeconfig at path. An empty path means KUBECONFIG, then
// ~/.kube/config, then the cluster that this process runs in.
func Config(path string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("loading kubeconfig %q: %w", path, err)
	}
	return cfg, nil
}

// tuned leaves fairness to the API server: its own priority levels see more than a client does.
func tuned(cfg *rest.Config, manager string) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.UserAgent = manager
	if cfg.Timeout == 0 {
		cfg.Timeout = requestTimeout
	}
	return cfg
}
