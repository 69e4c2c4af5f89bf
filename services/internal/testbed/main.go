package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/rbac"
)

// leakLooks is how often goroutines of servers that were stopped may still be found, for half a second each.
const leakLooks = 20

// Main runs the tests of a package from its TestMain, ends what they share, and
// fails the package when a goroutine is left over.
func Main(m *testing.M, ignore ...goleak.Option) {
	code := m.Run()
	err := errors.Join(shared.end(), sharedSearch.end(), openFGAs.end())
	if err == nil && code == 0 {
		for range leakLooks {
			if err = goleak.Find(ignore...); err == nil {
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// shared is the API server of this binary: starting one for each test would take seconds each.
//
//nolint:gochecknoglobals // Tests of one binary have nothing else in common.
var shared cluster

// cluster is a Kubernetes API server that starts when first needed.
type cluster struct {
	mu     sync.Mutex
	dir    string
	server *devserver.KubeLocal
	config *rest.Config
}

// started is c with a running server, which a test before may have ended.
func (c *cluster) started(ctx context.Context) (*cluster, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil && !c.server.Ended() {
		return c, nil
	}
	var err error
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "entail-testbed-"); err != nil {
			return nil, fmt.Errorf("making a directory for kube-local: %w", err)
		}
	}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	if c.config, err = c.server.Config(); err != nil {
		return nil, err
	}
	root, err := devserver.Checkout()
	if err != nil {
		return nil, err
	}
	deploy := os.DirFS(filepath.Join(root, "deploy"))
	if err := devserver.ApplyManifests(ctx, c.config, deploy); err != nil {
		return nil, err
	}
	if err := devserver.ApplyRoles(ctx, c.config, deploy); err != nil {
		return nil, err
	}
	return c, devserver.ApplyAccounts(ctx, c.config, deploy)
}

func (c *cluster) start(ctx context.Context) error {
	binary, err := devserver.FindKubeLocal()
	if err != nil {
		return err
	}
	c.server, err = devserver.StartKubeLocal(ctx, devserver.KubeLocalConfig{Binary: binary, Dir: c.dir, Users: rbac.Users(), UnsafeNoFsync: true})
	return err
}

func (c *cluster) end() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if c.server != nil {
		err = c.server.Stop()
	}
	if c.dir != "" {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}
