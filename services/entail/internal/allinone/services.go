package allinone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/internal/admission"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
	storesync "github.com/entail-dev/entail/services/store-sync"
	tuplesync "github.com/entail-dev/entail/services/tuple-sync"
	"github.com/entail-dev/entail/services/watcher"
	"github.com/entail-dev/entail/services/webhook"
)

const (
	readyWithin = time.Minute
	readyPoll   = 20 * time.Millisecond
	maxAnswer   = 4 << 10
)

// serviceRunners returns the services in the order in which they start and stop. The watcher comes first, because it publishes
// the changes that the others process.
func (m *localSystem) serviceRunners() []serviceRunner {
	all := []serviceRunner{
		{topology.Watcher, m.cfg.Ports.Watcher, func(ctx context.Context, around suppliedSettings) error {
			cfg := m.cfg.Services.Watcher
			around.applyTo(&cfg.Config)
			if !m.servers.accounts {
				cfg.LeaseNamespace = metav1.NamespaceDefault // The namespace of services exists only with accounts.
			}
			if !m.cfg.HasExternalCluster() {
				cfg.Identity = "entail-up" // No other replica exists: take over the lease of a killed process.
			}
			cfg.SecretNamespaces = m.cfg.watchedSecretNamespaces()
			return watcher.Run(ctx, cfg)
		}},
		{topology.StoreSync, m.cfg.Ports.StoreSync, func(ctx context.Context, around suppliedSettings) error {
			cfg := m.cfg.Services.StoreSync
			around.applyTo(&cfg.Config.Config)
			cfg.OpenFGA.Target = cmp.Or(cfg.OpenFGA.Target, m.servers.openFGA.GRPCTarget())
			if !m.cfg.HasExternalCluster() { // Optional: an external API server need not reach a second address.
				var err error
				if cfg.Admission, err = listenForWebhooks(loopback, m.cfg.Ports.StoreAdmission, "store-admission-port", ""); err != nil {
					return err
				}
			}
			return storesync.Run(ctx, cfg)
		}},
		{topology.TupleSync, m.cfg.Ports.TupleSync, func(ctx context.Context, around suppliedSettings) error {
			cfg := m.cfg.Services.TupleSync
			around.applyTo(&cfg.Config.Config)
			cfg.OpenFGA.Target = cmp.Or(cfg.OpenFGA.Target, m.servers.openFGA.GRPCTarget())
			return tuplesync.Run(ctx, cfg)
		}},
		{topology.ImpliedRole, m.cfg.Ports.ImpliedRole, func(ctx context.Context, around suppliedSettings) error {
			cfg := m.cfg.Services.ImpliedRole
			around.applyTo(&cfg.Config.Config)
			cfg.OpenFGA.Target = cmp.Or(cfg.OpenFGA.Target, m.servers.openFGA.GRPCTarget())
			var err error
			if cfg.Admission, err = m.impliedRoleAdmission(); err != nil {
				return err
			}
			return impliedrole.Run(ctx, cfg)
		}},
		{topology.Webhook, m.cfg.Ports.Webhook, func(ctx context.Context, around suppliedSettings) error {
			cfg := m.cfg.Services.Webhook
			around.applyTo(&cfg.Config)
			cfg.OpenFGA.Target = cmp.Or(cfg.OpenFGA.Target, m.servers.openFGA.GRPCTarget())
			if a := m.authorizer; a != nil {
				cfg.Authorizer.Listener, cfg.Authorizer.Certificate, cfg.Authorizer.Key = a.listener, a.filePath("tls.crt"), a.filePath("tls.key")
			}
			if !m.cfg.HasExternalCluster() {
				var err error
				if cfg.Admission, err = listenForWebhooks(loopback, m.cfg.Ports.WebhookAdmission, "webhook-admission-port", ""); err != nil {
					return err
				}
			}
			return webhook.Run(ctx, cfg)
		}},
	}
	if !m.cfg.OpenSearch {
		return all
	}
	return append(all, serviceRunner{topology.OpensearchSync, m.cfg.Ports.OpenSearchSync, func(ctx context.Context, around suppliedSettings) error {
		cfg := m.cfg.Services.OpenSearchSync
		around.applyTo(&cfg.Config.Config)
		cfg.Local = true
		return opensearchsync.Run(ctx, cfg)
	}})
}

// impliedRoleAdmission returns the address at which the API server calls implied-role: loopback for the local one, --admission-url
// for an external one.
func (m *localSystem) impliedRoleAdmission() (admission.Config, error) {
	if !m.cfg.hasReachableWebhooks() {
		m.printProgressf("no ImpliedRoles are in force in your cluster, because its API server cannot have their authors checked (--admission-url)")
		return admission.Config{}, nil
	}
	host := loopback
	if m.cfg.HasExternalCluster() {
		host = ""
	}
	return listenForWebhooks(host, m.cfg.Ports.Admission, "admission-port", m.cfg.AdmissionURL)
}

// listenForWebhooks listens on a port for calls of the API server. An empty url means the address of the listener.
func listenForWebhooks(host string, port int, flag, url string) (admission.Config, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return admission.Config{}, fmt.Errorf("listening for the API server's questions (--%s): %w", flag, err)
	}
	return admission.Config{Listener: listener, URL: cmp.Or(url, "https://"+listener.Addr().String())}, nil
}

// serviceRunner is a service with the function that runs it.
type serviceRunner struct {
	name string
	port int
	run  func(context.Context, suppliedSettings) error
}

// suppliedSettings holds the settings that this process supplies to a service in place of flags.
type suppliedSettings struct {
	cluster, nats string
	embed         service.EmbedConfig
}

func (s suppliedSettings) applyTo(cfg *service.Config) {
	cfg.Cluster = s.cluster
	cfg.NATS.URL = s.nats
	cfg.RPC.Auth = rpc.AuthNone
	cfg.Embed = s.embed
}

// runningService is a running service.
type runningService struct {
	name, address string
	cancel        context.CancelFunc
	done          chan struct{}
	err           error
}

func (m *localSystem) startServices(ctx context.Context) ([]*runningService, error) {
	runners := m.serviceRunners()
	workers := make([]*runningService, 0, len(runners))
	for _, r := range runners {
		w, err := m.startService(ctx, r)
		if err != nil {
			return workers, fmt.Errorf("start %s: %w", r.name, err)
		}
		workers = append(workers, w)
	}
	return workers, nil
}

// startService runs a service until [runningService.stopAndWait]. The end of ctx does not stop it, because services stop in order.
func (m *localSystem) startService(ctx context.Context, r serviceRunner) (*runningService, error) {
	log, err := m.logs.openPartLogger(r.name)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(r.port)))
	if err != nil {
		return nil, err
	}
	kube, err := m.servers.restConfigFor(r.name)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &runningService{name: r.name, address: "http://" + listener.Addr().String(), cancel: cancel, done: make(chan struct{})}
	around := suppliedSettings{
		cluster: m.cfg.Cluster, nats: m.servers.nats.URL(r.name),
		embed: service.EmbedConfig{Log: log, Kube: kube, Listener: listener},
	}
	go func() {
		defer close(w.done)
		if err := r.run(ctx, around); err != nil {
			w.err = fmt.Errorf("%s: %w", r.name, err)
		}
		if ctx.Err() == nil {
			m.fail(fmt.Errorf("%s ended; its log is %s", r.name, filepath.Join(m.logs.dir, r.name+".log")))
		}
	}()
	return w, nil
}

// stopAndWait stops a service, waits for it, and returns its error.
func (w *runningService) stopAndWait() error {
	w.cancel()
	<-w.done
	return w.err
}

// awaitAllReady waits until every service reports that it is ready.
func awaitAllReady(ctx context.Context, workers []*runningService) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for _, w := range workers {
		if err := w.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *runningService) awaitReady(ctx context.Context) error {
	for {
		answer, ok := w.queryReadiness(ctx)
		if ok {
			return nil
		}
		if !backoff.Sleep(ctx, readyPoll) {
			return fmt.Errorf("wait for %s: %w (its answer: %s)", w.name, context.Cause(ctx), answer)
		}
	}
}

func (w *runningService) queryReadiness(ctx context.Context) (answer string, ok bool) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.address+"/readyz", http.NoBody)
	if err != nil {
		return err.Error(), false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error(), false
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // A partial body is still useful in the error.
	return strings.TrimSpace(string(body)), response.StatusCode == http.StatusOK
}
