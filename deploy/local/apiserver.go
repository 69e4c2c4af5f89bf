package main

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// apiServer is a configured API server. It is not app.NewAPIServerCommand,
// because that command listens to signals alone and not to its context: it
// could not be stopped before etcd.
type apiServer struct {
	completed apiserver.CompletedOptions
}

// newAPIServer reads the flags as the kube-apiserver command does. The logs
// of all Kubernetes components of this process go to logs.
func newAPIServer(ctx context.Context, args []string, listener net.Listener, logs io.Writer) (*apiServer, error) {
	opts := apiserver.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	flags.Usage = func() {}
	sets := opts.Flags()
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		return nil, fmt.Errorf("reading flags of the API server: %w", err)
	}
	opts.SecureServing.Listener = listener
	if err := opts.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("setting feature gates of the API server: %w", err)
	}
	streams := &logsapi.LoggingOptions{ErrorStream: logs, InfoStream: logs}
	if err := logsapi.ValidateAndApplyWithOptions(opts.Logs, streams, utilfeature.DefaultFeatureGate); err != nil {
		return nil, fmt.Errorf("setting up logs of the API server: %w", err)
	}
	completed, err := opts.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("completing flags of the API server: %w", err)
	}
	if err := utilerrors.NewAggregate(completed.Validate()); err != nil {
		return nil, fmt.Errorf("checking flags of the API server: %w", err)
	}
	return &apiServer{completed: completed}, nil
}

// run serves until the context ends and the requests in flight are answered.
func (s *apiServer) run(ctx context.Context) error {
	return app.Run(ctx, s.completed)
}
