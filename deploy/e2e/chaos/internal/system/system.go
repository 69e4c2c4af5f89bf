package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config configures a system.
type Config struct {
	// Checkout holds bin/ and deploy/.
	Checkout string
	// Dir keeps all state and logs.
	Dir string
	// Nodes is the number of NATS servers: 1, or 3 with three copies of each stream.
	Nodes int
	// Replicas is the number of replicas of every service.
	Replicas int
	// Binaries holds the paths of binaries that replace the built ones, by service.
	Binaries map[string]string
}

const (
	// startWithin bounds the start of everything, on a busy machine too.
	startWithin = 3 * time.Minute
	loopback    = "127.0.0.1"
)

// System holds all running processes.
type System struct {
	cfg      Config
	Nodes    []*Process
	OpenFGA  *Process
	Kube     *Process
	Services []*Replica
	// Routes holds the paths between NATS servers: Routes[i][j] is the path from i to j.
	Routes map[int]map[int]*Proxy
	// Took is the time from the start of the first service until all are ready.
	Took time.Duration

	ports    reservedPorts
	spawner  *childSpawner
	mu       sync.Mutex
	failures []error
}

// reservedPorts are fixed at the start, so a restarted server keeps its address.
type reservedPorts struct {
	nats, routes            []int
	openFGA, openFGAMetrics int
	kube                    int
}

// Start starts everything and returns when every service is ready.
func Start(ctx context.Context, cfg Config) (*System, error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	s := &System{cfg: cfg, spawner: newChildSpawner()}
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("starting the system in %s: %w", cfg.Dir, err)
	}
	return s, nil
}

func (s *System) start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := os.MkdirAll(s.cfg.Dir, 0o700); err != nil {
		return err
	}
	if err := s.reservePorts(); err != nil {
		return err
	}
	if err := s.prepareNodes(); err != nil {
		return err
	}
	group, starting := errgroup.WithContext(ctx)
	group.Go(s.startNodes)
	group.Go(func() error { return s.startOpenFGA(starting) })
	group.Go(func() error { return s.startKube(starting) })
	if err := group.Wait(); err != nil {
		return err
	}
	if err := s.addServices(); err != nil {
		return err
	}
	began := time.Now()
	defer func() { s.Took = time.Since(began) }()
	for _, r := range s.Services {
		if err := r.Process.Start(); err != nil {
			return err
		}
	}
	return pollUntil(ctx, func(ctx context.Context) error {
		if failed := s.FailureErr(); failed != nil {
			cancel(failed)
		}
		return s.CheckReady(ctx)
	})
}

// CheckReady returns nil if every running replica reports that it is ready.
func (s *System) CheckReady(ctx context.Context) error {
	for _, r := range s.Services {
		if !r.Process.IsRunning() {
			continue // Killed on purpose; [System.FailureErr] returns crashes.
		}
		if err := r.CheckReady(ctx); err != nil {
			return fmt.Errorf("%s: %w", r.Process.Name, err)
		}
	}
	return nil
}

// WebhookURLs returns the URLs of the running replicas of the webhook.
func (s *System) WebhookURLs() []string {
	return s.runningWebhooks(func(r *Replica) string { return r.URL })
}

// AuthorizerURLs returns the URLs at which the running replicas of the webhook answer SubjectAccessReviews.
func (s *System) AuthorizerURLs() []string {
	return s.runningWebhooks(func(r *Replica) string { return r.AuthorizerURL })
}

func (s *System) runningWebhooks(url func(*Replica) string) (urls []string) {
	for _, r := range s.Services {
		if r.Service.Name == Webhook && r.Process.IsRunning() {
			urls = append(urls, url(r))
		}
	}
	return urls
}

// newProcess returns a process of this system, which is not started.
func (s *System) newProcess(name, path string, args ...string) *Process {
	return &Process{
		Name: name, path: path, args: args, log: filepath.Join(s.cfg.Dir, "logs", name+".log"), spawner: s.spawner,
		failed: func(err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.failures = append(s.failures, err)
		},
	}
}

// FailureErr returns an error for the processes that ended unexpectedly.
func (s *System) FailureErr() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.failures...)
}

func (s *System) binaryPath(name string) string { return filepath.Join(s.cfg.Checkout, "bin", name) }

// AdminConfig returns the administrator's configuration for the API server, past every proxy.
func (s *System) AdminConfig() (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.kubeDir(), "admin.kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of kube-local: %w", err)
	}
	cfg.QPS = -1
	return cfg, nil
}

// AllProcesses returns all processes.
func (s *System) AllProcesses() []*Process {
	all := append([]*Process{}, s.Nodes...)
	all = append(all, s.OpenFGA, s.Kube)
	for _, r := range s.Services {
		all = append(all, r.Process)
	}
	return all
}

// Close kills all processes and closes all paths. State and logs stay.
func (s *System) Close() {
	for _, p := range s.AllProcesses() {
		if p != nil {
			p.Kill()
		}
	}
	for _, paths := range s.Routes {
		for _, p := range paths {
			p.Close()
		}
	}
	for _, r := range s.Services {
		for _, p := range r.AllLinks() {
			p.Close()
		}
	}
	s.spawner.close()
}
