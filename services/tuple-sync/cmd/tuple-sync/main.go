// Tuple-sync keeps relationship tuples in OpenFGA in step with Kubernetes.
package main

import (
	"context"

	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
	tuplesync "github.com/entail-dev/entail/services/tuple-sync"
)

func main() {
	cfg := tuplesync.Defaults()
	service.Main(topology.TupleSync, cfg.BindFlags, func(ctx context.Context) error { return tuplesync.Run(ctx, cfg) })
}
