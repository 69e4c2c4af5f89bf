// Command implied-role keeps the RoleBindings that follow from ImpliedRoles.
package main

import (
	"context"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
)

func main() {
	cfg := impliedrole.Defaults()
	service.Main(topology.ImpliedRole, cfg.BindFlags, func(ctx context.Context) error { return impliedrole.Run(ctx, cfg) })
}
