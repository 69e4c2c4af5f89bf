package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/entail-dev/entail/deploy/local/internal/datadir"
	"github.com/entail-dev/entail/deploy/local/internal/options"
)

const (
	readyTimeout = 60 * time.Second
	readyPoll    = 20 * time.Millisecond
)

// readyLine is the line on standard output.
type readyLine struct {
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
}

// runInDataDir takes what only one process may have, the data directory and the port,
// and then runs the cluster.
func runInDataDir(ctx context.Context, opts options.Options, out io.Writer) (err error) {
	dir, err := datadir.Open(opts.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	listener, err := dir.Listen(opts.BindAddress, opts.Port)
	if err != nil {
		return err
	}
	defer listener.Close() // for the ways out before the API server owns it
	logs, err := datadir.OpenLog(opts.LogFile)
	if err != nil {
		return err
	}
	if err := redirectStderr(ctx, logs); err != nil {
		return err
	}
	identity, err := newClusterIdentity(dir, opts, listener)
	if err != nil {
		return err
	}
	c := localCluster{opts: opts, identity: identity, etcdDir: dir.Path("etcd"), logs: logs, out: out}
	if err := c.run(ctx); err != nil {
		return fmt.Errorf("%w (see %s)", err, opts.LogFile)
	}
	return nil
}

// localCluster is etcd, the API server and the controllers.
type localCluster struct {
	opts     options.Options
	identity *clusterIdentity
	etcdDir  string
	logs     io.Writer
	out      io.Writer
}

// run brings the parts up, says so on standard output, and takes them down in
// the opposite order when the context ends or a part fails.
func (c *localCluster) run(ctx context.Context) error {
	store, err := startEtcd(ctx, c.etcdDir, c.opts)
	if err != nil {
		return err
	}
	defer store.close()
	server, err := newAPIServer(ctx, c.identity.apiServerArgs(store.endpoint, c.opts), c.identity.listener, c.logs)
	if err != nil {
		return err
	}
	controllers, err := newControllers(c.identity)
	if err != nil {
		return err
	}
	api := startComponent("API server", server.run)
	defer api.stop()
	if err := waitReady(ctx, api, controllers.client); err != nil {
		return err
	}
	control := startComponent("controllers", controllers.run)
	defer control.stop()
	line := readyLine{Kubeconfig: c.identity.kubeconfig, Server: c.identity.cluster.Server}
	if err := json.NewEncoder(c.out).Encode(line); err != nil {
		return fmt.Errorf("printing the ready line: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-api.done:
		return api.failureErr()
	case <-control.done:
		return control.failureErr()
	}
}

// waitReady polls until the API server has done all that it does at a start;
// it creates the default namespace aside from its own readiness.
func waitReady(ctx context.Context, api *component, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("the API server is not ready after %s", readyTimeout))
	defer cancel()
	for {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil {
			if _, err = client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{}); err == nil {
				return nil
			}
		}
		select {
		case <-time.After(readyPoll):
		case <-api.done:
			return api.failureErr()
		case <-ctx.Done():
			return fmt.Errorf("waiting for the API server: %w (last answer: %w)", context.Cause(ctx), err)
		}
	}
}
