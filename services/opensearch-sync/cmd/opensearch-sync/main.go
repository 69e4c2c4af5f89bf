// Opensearch-sync keeps OpenSearch clusters in step with the objects that declare users, roles, tenants, action groups
// and role mappings.
package main

import (
	"context"

	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
)

func main() {
	cfg := opensearchsync.Defaults()
	service.Main(topology.OpensearchSync, cfg.BindFlags, func(ctx context.Context) error { return opensearchsync.Run(ctx, cfg) })
}
