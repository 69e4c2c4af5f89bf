package testenv

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

// leakLooks bounds the checks for leaked goroutines. Each check takes up to half a second, in which goroutines of
// stopped servers may end.
const leakLooks = 20

// Main runs the tests of a package from its TestMain and stops the shared servers. The package fails if a goroutine is
// left.
//
// If the package has a [RightsSuite] and all its tests ran, Main reports the rights of the service that no test used.
// In a nightly run, which revokes every right, such a right fails the package.
func Main(m *testing.M, ignore ...goleak.Option) {
	code := m.Run()
	err := shared.stopServer()
	if err == nil && code == 0 && isWholePackage() {
		unused := shared.checkRightsUsed()
		if Nightly {
			err = unused
		} else if unused != nil {
			fmt.Fprintf(os.Stderr, "for this commit's choice of rights: %v\n", unused)
		}
	}
	err = errors.Join(err, shared.removeDirectory(), sharedSearch.endServer(), openFGAs.endServers())
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

// shared is the API server of this binary. A server per test would take several seconds each.
//
//nolint:gochecknoglobals // Tests of one binary have nothing else in common.
var shared sharedKube

// sharedKube is a Kubernetes API server that starts at its first use.
type sharedKube struct {
	mu sync.Mutex
	// root is the directory with the audit log. dir is the server's own directory in root.
	root, dir string
	server    *devserver.KubeLocal
	config    *rest.Config
	rights    rightsUsage
}

// ensureStarted starts the server unless it is running, and returns c. An earlier test may have stopped the server.
func (c *sharedKube) ensureStarted(ctx context.Context) (*sharedKube, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil && !c.server.HasEnded() {
		return c, nil
	}
	var err error
	if c.root == "" {
		if c.root, err = os.MkdirTemp("", "entail-testenv-"); err != nil {
			return nil, fmt.Errorf("creating a directory for kube-local: %w", err)
		}
		c.dir = filepath.Join(c.root, "kube")
	}
	if err := c.startServer(ctx); err != nil {
		return nil, err
	}
	if c.config, err = c.server.AdminConfig(); err != nil {
		return nil, err
	}
	root, err := devserver.CheckoutRoot()
	if err != nil {
		return nil, err
	}
	deploy := os.DirFS(filepath.Join(root, "deploy"))
	if err := devserver.ApplyManifests(ctx, c.config, deploy); err != nil {
		return nil, err
	}
	if err := devserver.ApplyUserRoles(ctx, c.config, deploy); err != nil {
		return nil, err
	}
	return c, devserver.ApplyServiceAccounts(ctx, c.config, deploy)
}

func (c *sharedKube) startServer(ctx context.Context) error {
	binary, err := devserver.FindKubeLocal()
	if err != nil {
		return err
	}
	args, err := auditLogDir(c.root).apiServerFlags()
	if err != nil {
		return err
	}
	c.server, err = devserver.StartKubeLocal(ctx, devserver.KubeLocalConfig{
		Binary: binary, Dir: c.dir, Users: rbac.AccountUserNames(), APIServerArgs: args, UnsafeNoFsync: true,
	})
	return err
}

func (c *sharedKube) stopServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		return nil
	}
	return c.server.Stop()
}

func (c *sharedKube) removeDirectory() error {
	if c.root == "" {
		return nil
	}
	return os.RemoveAll(c.root)
}
