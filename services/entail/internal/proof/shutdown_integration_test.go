//go:build integration

package proof

import (
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// gracePeriod is the default time that Kubernetes gives a pod to stop.
const gracePeriod = 30 * time.Second

// proxyPath forwards connections to a server. It can be cut, or fall silent as if the machine of the server died.
type proxyPath struct {
	listener net.Listener
	server   string

	mu     sync.Mutex
	silent bool
	conns  []net.Conn
}

func newProxyPath(t *testing.T, server string) *proxyPath {
	t.Helper()
	listener := testenv.ListenLoopback(t)
	p := &proxyPath{listener: listener, server: server}
	go p.serve()
	t.Cleanup(p.cut)
	return p
}

func (p *proxyPath) address() string { return p.listener.Addr().String() }

func (p *proxyPath) serve() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = from.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, from, to)
		p.mu.Unlock()
		go p.pass(from, to)
		go p.pass(to, from)
	}
}

// pass copies data from one connection to the other, and drops it while the path is silent.
func (p *proxyPath) pass(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		silent := p.silent
		p.mu.Unlock()
		if silent {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *proxyPath) fallSilent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
}

func (p *proxyPath) cut() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
}

// proxyPaths holds the paths to the servers of one system.
type proxyPaths struct{ nats, openFGA, kube *proxyPath }

// startOnPaths starts the services as processes that reach every server through a path.
func startOnPaths(t *testing.T) (*testenv.KubeServer, proxyPaths, []*process) {
	t.Helper()
	bus, openFGA, kube := testenv.StartNATS(t), testenv.LazyOpenFGA(t), testenv.StartKube(t)
	p := proxyPaths{newProxyPath(t, parsed(t, bus.URL()).Host), newProxyPath(t, openFGA.Config().Target), newProxyPath(t, parsed(t, kube.AdminConfig().Host).Host)}
	var services []*process
	for _, name := range []string{topology.Watcher, topology.StoreSync, topology.TupleSync} {
		toBus := parsed(t, bus.URLOf(name))
		toBus.Host = p.nats.address()
		services = append(services, spawn(t, name, serviceServers{
			nats: toBus.String(), openFGA: fga.Config{Target: p.openFGA.address()}, kubeconfig: kubeconfigThrough(t, p.kube, kube.ServiceKubeconfig(name)),
		}))
	}
	return kube, p, services
}

func parsed(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// kubeconfigThrough returns a copy of a kubeconfig whose server is the path.
func kubeconfigThrough(t *testing.T, p *proxyPath, file string) string {
	t.Helper()
	cfg, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range cfg.Clusters {
		cluster.Server = "https://" + p.address()
	}
	led := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*cfg, led); err != nil {
		t.Fatal(err)
	}
	return led
}

// end sends SIGTERM, and kills the process after the grace period.
func (p *process) end() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	late := time.AfterFunc(gracePeriod, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	return p.cmd.Wait()
}

func TestServicesStopInOrderDuringOutages(t *testing.T) {
	dependencies := map[string]func(proxyPaths) *proxyPath{
		"NATS": func(p proxyPaths) *proxyPath { return p.nats }, "OpenFGA": func(p proxyPaths) *proxyPath { return p.openFGA },
		"the API server": func(p proxyPaths) *proxyPath { return p.kube },
	}
	for name, dependency := range dependencies {
		for way, lose := range map[string]func(*proxyPath){"is gone": (*proxyPath).cut, "is silent": (*proxyPath).fallSilent} {
			t.Run(name+" "+way, func(t *testing.T) {
				kube, paths, services := startOnPaths(t)
				spec := corev1alpha1.StoreSpec{CoreModule: core, Tuples: []corev1alpha1.Tuple{{Object: "doc:1", Relation: "viewer", User: "user:1"}}}
				kube.Apply(t, kinds.Stores(), "ending", spec)
				testenv.Eventually(t, time.Minute, func() error {
					stores, err := list[corev1alpha1.Store](t.Context(), kube.DynamicClient(t), kinds.Stores())
					if err == nil && !ready(stores["ending"].Status.Conditions, stores["ending"].Generation) {
						err = errors.New("the Store is not Ready")
					}
					return err
				})
				lose(dependency(paths))
				spec.Tuples = nil
				kube.Apply(t, kinds.Stores(), "ending", spec)
				<-time.After(time.Second) // Stop the services during the work.
				var ends sync.WaitGroup
				for _, p := range services {
					ends.Go(func() {
						if err := p.end(); err != nil {
							t.Errorf("%s ended with %v", p.name, err)
						}
					})
				}
				ends.Wait()
			})
		}
	}
}
