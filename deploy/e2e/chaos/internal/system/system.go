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

	ports    ports
	spawner  *spawner
	mu       sync.Mutex
	failures []error
}

// ports are fixed at the start, so a restarted server keeps its address.
type ports struct {
	nats, routes            []int
	openFGA, openFGAMetrics int
	kube                    int
}

// Start starts everything and returns when every service is ready.
func Start(ctx context.Context, cfg Config) (*System, error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	s := &System{cfg: cfg, spawner: newSpawner()}
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
	if err := s.reserve(); err != nil {
		return err
	}
	if err := s.addNodes(); err != nil {
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
	return poll(ctx, func(ctx context.Context) error {
		if failed := s.Failures(); failed != nil {
			cancel(failed)
		}
		return s.Ready(ctx)
	})
}

// Ready returns nil if every running replica reports that it is ready.
func (s *System) Ready(ctx context.Context) error {
	for _, r := range s.Services {
		if !r.Process.Runs() {
			continue // Killed on purpose; [System.Failures] returns crashes.
		}
		if err := r.Ready(ctx); err != nil {
			return fmt.Errorf("%s: %w", r.Process.Name, err)
		}
	}
	return nil
}

// Webhooks returns the URLs of the running replicas of the webhook.
func (s *System) Webhooks() []string {
	return s.runningWebhooks(func(r *Replica) string { return r.URL })
}

// Authorizers returns the URLs at which the running replicas of the webhook answer SubjectAccessReviews.
func (s *System) Authorizers() []string {
	return s.runningWebhooks(func(r *Replica) string { return r.AuthorizerURL })
}

func (s *System) runningWebhooks(url func(*Replica) string) (urls []string) {
	for _, r := range s.Services {
		if r.Service.Name == Webhook && r.Process.Runs() {
			urls = append(urls, url(r))
		}
	}
	return urls
}

// process returns a process of this system, which is not started.
func (s *System) process(name, path string, args ...string) *Process {
	return &Process{
		Name: name, path: path, args: args, log: filepath.Join(s.cfg.Dir, "logs", name+".log"), spawner: s.spawner,
		failed: func(err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.failures = append(s.failures, err)
		},
	}
}

// Failures returns an error for the processes that ended unexpectedly.
func (s *System) Failures() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.failures...)
}

func (s *System) binary(name string) string { return filepath.Join(s.cfg.Checkout, "bin", name) }

// Admin returns the administrator's configuration for the API server, past every proxy.
func (s *System) Admin() (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.kubeDir(), "admin.kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of kube-local: %w", err)
	}
	cfg.QPS = -1
	return cfg, nil
}

// Processes returns all processes.
func (s *System) Processes() []*Process {
	all := append([]*Process{}, s.Nodes...)
	all = append(all, s.OpenFGA, s.Kube)
	for _, r := range s.Services {
		all = append(all, r.Process)
	}
	return all
}

// Close kills all processes and closes all paths. State and logs stay.
func (s *System) Close() {
	for _, p := range s.Processes() {
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
		for _, p := range r.Links() {
			p.Close()
		}
	}
	s.spawner.close()
}
