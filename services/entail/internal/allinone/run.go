package allinone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/entail-dev/entail/deploy"
	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/service"
)

var (
	errAPIServer  = errors.New("the Kubernetes API server ended by itself")
	errOpenSearch = errors.New("OpenSearch ended by itself")
)

// Run runs everything until ctx ends or a part fails. The end of ctx is no error.
func Run(ctx context.Context, cfg Config) error {
	dir, err := cfg.createStateDir()
	if err != nil {
		return err
	}
	unlock, err := lockState(dir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := cfg.validateSettings(); err != nil {
		return err
	}
	if err := cfg.requireSameCluster(dir); err != nil {
		return err
	}
	alive, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	m := &localSystem{cfg: cfg, dir: dir, logs: newLogs(filepath.Join(dir, "logs"), cfg.Progress), fail: fail}
	err = m.startServersAndServices(alive)
	if err == nil {
		<-alive.Done()
		err = context.Cause(alive)
	}
	if ctx.Err() != nil {
		err = nil // The caller ended ctx, perhaps during the start.
	}
	m.printProgressf("stopping")
	return errors.Join(err, m.stopServicesAndServers())
}

// localSystem holds all running parts, from the servers up to the services.
type localSystem struct {
	cfg  Config
	dir  string
	logs *logs
	fail context.CancelCauseFunc

	// authorizer is nil when an external cluster is used.
	authorizer *localAuthorizer
	servers    *servers
	services   []*runningService
}

func (m *localSystem) printProgressf(format string, args ...any) {
	_, _ = fmt.Fprintf(m.cfg.Progress, format+"\n", args...)
}

// startServersAndServices starts everything, and calls Ready once it serves.
func (m *localSystem) startServersAndServices(ctx context.Context) error {
	begun := time.Now()
	libraries, err := m.logs.openPartLogger("libraries")
	if err != nil {
		return err
	}
	service.CaptureLibraryLogs(libraries)
	if err := m.writeAuthorizerFiles(); err != nil {
		return err
	}
	m.printProgressf("starting servers: %s", strings.Join(m.cfg.serverNames(), ", "))
	if m.servers, err = startServers(ctx, m.cfg, m.dir, m.logs); err != nil {
		return err
	}
	go m.failWhenServerEnds(ctx)
	m.printProgressf("applying CRDs, admission policies and accounts of services to %s", m.servers.kube.Host)
	if err := m.applyManifests(ctx); err != nil {
		return err
	}
	m.printProgressf("starting services")
	if m.services, err = m.startServices(ctx); err != nil {
		return err
	}
	if err := awaitAllReady(ctx, m.services); err != nil {
		return err
	}
	if err := m.createConfiguredSamples(ctx); err != nil {
		return err
	}
	return m.cfg.Ready(m.listEndpoints(time.Since(begun)))
}

func (m *localSystem) failWhenServerEnds(ctx context.Context) {
	select {
	case <-m.servers.apiServerDone():
		m.fail(fmt.Errorf("%w: its log is in %s", errAPIServer, filepath.Join(m.dir, "kube")))
	case <-m.servers.openSearchDone():
		m.fail(fmt.Errorf("%w: its log is in %s", errOpenSearch, filepath.Join(m.dir, "opensearch")))
	case <-ctx.Done():
	}
}

func (m *localSystem) applyManifests(ctx context.Context) error {
	var manifests fs.FS = deploy.Files
	if m.cfg.Manifests != "" {
		manifests = os.DirFS(m.cfg.Manifests)
	}
	if err := devserver.ApplyManifests(ctx, m.servers.kube, manifests); err != nil {
		return err
	}
	if err := m.applyServiceAccounts(ctx, manifests); err != nil || m.servers.openSearch == nil {
		return err
	}
	if err := bindSecretRoles(ctx, m.servers.kube); err != nil {
		return err
	}
	return applyConnectionSecret(ctx, m.servers.kube, m.servers.openSearch)
}

func (m *localSystem) createConfiguredSamples(ctx context.Context) error {
	if m.cfg.Samples == "" {
		return nil
	}
	created, err := createMissingSamples(ctx, m.servers.kube, sampleSource{path: m.cfg.Samples, openSearch: m.cfg.OpenSearch})
	if len(created) > 0 {
		m.printProgressf("created %s", strings.Join(created, ", "))
	}
	return err
}

// stopServicesAndServers stops everything from the top: first the watcher, which publishes changes, then the other
// services, then the servers.
func (m *localSystem) stopServicesAndServers() error {
	var errs []error
	for _, w := range m.services {
		errs = append(errs, w.stopAndWait())
	}
	if m.servers != nil {
		errs = append(errs, m.servers.stopServers())
	}
	if m.authorizer != nil {
		_ = m.authorizer.listener.Close() // The webhook has closed it already if it started.
	}
	return errors.Join(append(errs, m.logs.closeLogs())...)
}
