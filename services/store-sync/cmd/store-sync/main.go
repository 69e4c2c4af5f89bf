// Store-sync keeps OpenFGA stores and their models in step with Kubernetes.
package main

import (
	"context"

	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
	storesync "github.com/entail-dev/entail/services/store-sync"
)

func main() {
	cfg := storesync.Defaults()
	service.Main(topology.StoreSync, cfg.BindFlags, func(ctx context.Context) error { return storesync.Run(ctx, cfg) })
}
