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

// Config says what to run.
type Config struct {
	// Checkout holds bin/ and deploy/.
	Checkout string
	// Dir keeps all state and logs.
	Dir string
	// Nodes of NATS: 1, or 3 with streams in three copies.
	Nodes int
	// Replicas of every service.
	Replicas int
	// Binaries replaces that of a service.
	Binaries map[string]string
}

const (
	// startWithin bounds the start of everything, on however busy a machine.
	startWithin = 3 * time.Minute
	loopback    = "127.0.0.1"
)

// System is everything that runs.
type System struct {
	cfg      Config
	Nodes    []*Process
	OpenFGA  *Process
	Kube     *Process
	Services []*Replica
	// Routes are the paths between NATS servers: Routes[i][j] is how i reaches j.
	Routes map[int]map[int]*Proxy
	// Took is how long the services needed to be ready, from when the first of them was started.
	Took time.Duration

	ports    ports
	spawner  *spawner
	mu       sync.Mutex
	failures []error
}

// ports are fixed at the start, so that who is started again is where it was.
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

// Ready is nil when every replica of every service that runs says that it is ready.
func (s *System) Ready(ctx context.Context) error {
	for _, r := range s.Services {
		if !r.Process.Runs() {
			continue // It was killed; of those that end by themselves [System.Failures] tells.
		}
		if err := r.Ready(ctx); err != nil {
			return fmt.Errorf("%s: %w", r.Process.Name, err)
		}
	}
	return nil
}

// Webhooks are where those that run are asked.
func (s *System) Webhooks() (urls []string) {
	for _, r := range s.Services {
		if r.Service.Name == Webhook && r.Process.Runs() {
			urls = append(urls, r.URL)
		}
	}
	return urls
}

// process is a program of this system.
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

// Failures are the processes that have ended by themselves.
func (s *System) Failures() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.failures...)
}

func (s *System) binary(name string) string { return filepath.Join(s.cfg.Checkout, "bin", name) }

// Admin leads an administrator to the API server, past every proxy.
func (s *System) Admin() (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.kubeDir(), "admin.kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of kube-local: %w", err)
	}
	cfg.QPS = -1
	return cfg, nil
}

// Processes lists everything that can be killed.
func (s *System) Processes() []*Process {
	all := append([]*Process{}, s.Nodes...)
	all = append(all, s.OpenFGA, s.Kube)
	for _, r := range s.Services {
		all = append(all, r.Process)
	}
	return all
}

// Close kills everything. State and logs stay.
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
