// Watcher turns every change in a Kubernetes cluster into an event on the bus.
package main

import (
	"context"

	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher"
)

func main() {
	cfg := watcher.Defaults()
	service.Main(topology.Watcher, cfg.BindFlags, func(ctx context.Context) error { return watcher.Run(ctx, cfg) })
}
