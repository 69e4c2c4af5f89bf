// Command webhook answers which access subjects have, and by which bindings.
package main

import (
	"context"

	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/webhook"
)

func main() {
	cfg := webhook.Defaults()
	service.Main(topology.Webhook, cfg.BindFlags, func(ctx context.Context) error { return webhook.Run(ctx, cfg) })
}
