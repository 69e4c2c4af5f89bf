package allinone

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/devserver/embedded"
	"github.com/entail-dev/entail/services/internal/devserver/opensearch"
	"github.com/entail-dev/entail/services/internal/rbac"
)

// servers holds the servers that the services use.
type servers struct {
	nats    *embedded.NATSServer
	openFGA *embedded.OpenFGAServer
	// local is nil when an external cluster is used.
	local *devserver.KubeLocal
	// openSearch is nil unless the configuration includes it.
	openSearch *opensearch.Server

	// kube has the rights of the user, or of an administrator of the local API server. Services use [servers.restConfigFor].
	kube *rest.Config
	// accounts is true if every service has its own account.
	accounts bool
	// kubeconfig is the file to use with kubectl; empty means kubectl's default.
	kubeconfig string
}

// serverNames returns the names of the servers to start, for people.
func (c *Config) serverNames() []string {
	names := []string{"NATS", "OpenFGA", "Kubernetes"}
	if c.OpenSearch {
		names = append(names, "OpenSearch")
	}
	return names
}

// startServers starts the servers concurrently. The API server takes the longest by far.
func startServers(ctx context.Context, cfg Config, dir string, l *logs) (*servers, error) {
	s := &servers{}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.startNATS(cfg, dir, l) })
	group.Go(func() error { return s.startOpenFGA(cfg, dir, l) })
	group.Go(func() error {
		if cfg.HasExternalCluster() {
			return s.useExternalCluster(cfg)
		}
		return s.startKube(ctx, cfg, dir)
	})
	if cfg.OpenSearch {
		group.Go(func() error { return s.startOpenSearch(ctx, cfg, dir) })
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, s.stopServers())
	}
	return s, nil
}

func (s *servers) startNATS(cfg Config, dir string, l *logs) error {
	log, err := l.openPartLogger("nats")
	if err != nil {
		return err
	}
	s.nats, err = embedded.StartNATS(embedded.NATSConfig{Dir: filepath.Join(dir, "nats"), Port: cfg.Ports.NATS, Log: log})
	return err
}

func (s *servers) startOpenFGA(cfg Config, dir string, l *logs) error {
	log, err := l.openPartLogger("openfga")
	if err != nil {
		return err
	}
	s.openFGA, err = embedded.StartOpenFGA(embedded.OpenFGAConfig{
		File: filepath.Join(dir, "openfga.sqlite"), GRPCPort: cfg.Ports.OpenFGA,
		HTTP: true, HTTPPort: cfg.Ports.OpenFGAHTTP, Log: log,
	})
	return err
}

func (s *servers) startKube(ctx context.Context, cfg Config, dir string) error {
	binary, err := devserver.FindKubeLocal()
	if err != nil {
		return fmt.Errorf("%w; or use a cluster of yours: --kubeconfig, --use-cluster", err)
	}
	s.local, err = devserver.StartKubeLocal(ctx, devserver.KubeLocalConfig{
		Binary: binary, Dir: filepath.Join(dir, "kube"), Port: cfg.Ports.Kube, Users: rbac.AccountUserNames(),
		AuthorizationConfig: cfg.authorization,
	})
	if err != nil {
		return err
	}
	s.kubeconfig = s.local.Kubeconfig
	s.kube, err = s.local.AdminConfig()
	return err
}

// startOpenSearch starts OpenSearch in a part of dir. OpenSearch does not run as root, so its user receives the right
// to pass through dir.
func (s *servers) startOpenSearch(ctx context.Context, cfg Config, dir string) error {
	home, err := opensearch.FindInstallation()
	if err != nil {
		return err
	}
	if err := opensearch.AllowServerUserToTraverse(dir); err != nil {
		return err
	}
	s.openSearch, err = opensearch.Start(ctx, opensearch.Config{
		Home: home, Dir: filepath.Join(dir, "opensearch"), Port: cfg.Ports.OpenSearch,
	})
	return err
}

func (s *servers) useExternalCluster(cfg Config) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = cfg.Kubeconfig
	kube, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig of your cluster: %w", err)
	}
	s.kube, s.kubeconfig = kube, cfg.Kubeconfig
	return nil
}

// apiServerDone returns a channel that is closed when the local API server ends unexpectedly.
func (s *servers) apiServerDone() <-chan struct{} {
	if s.local == nil {
		return nil
	}
	return s.local.Done()
}

// openSearchDone returns a channel that is closed when OpenSearch ends unexpectedly.
func (s *servers) openSearchDone() <-chan struct{} {
	if s.openSearch == nil {
		return nil
	}
	return s.openSearch.Done()
}

func (s *servers) stopServers() error {
	if s.nats != nil {
		s.nats.Stop()
	}
	if s.openFGA != nil {
		s.openFGA.Stop()
	}
	var errs []error
	if s.openSearch != nil {
		errs = append(errs, s.openSearch.Stop())
	}
	if s.local != nil {
		errs = append(errs, s.local.Stop())
	}
	return errors.Join(errs...)
}
