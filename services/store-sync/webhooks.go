package storesync

import (
	"context"
	"fmt"

	"github.com/entail-dev/entail/services/internal/admission"
	"github.com/entail-dev/entail/services/internal/rbac"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/store-sync/internal/validating"
)

// startWebhooks starts the webhooks that refuse texts no model can hold. They run from the start, even without NATS.
func startWebhooks(cfg Config) service.EarlyTask {
	return func(rt *service.Runtime) (func(context.Context) error, error) {
		if !cfg.Admission.Enabled() {
			return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
		}
		server, err := admission.New(cfg.Admission, admission.Options{
			Name: validating.Name, Webhooks: validating.Webhooks(cfg.Limits), Namespace: rbac.Namespace, Kube: rt.Kube, Log: rt.Log, Metrics: rt.Metrics,
		})
		if err != nil {
			return nil, fmt.Errorf("opening the webhooks: %w", err)
		}
		return server.Run, nil
	}
}
