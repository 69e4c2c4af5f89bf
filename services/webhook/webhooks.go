package webhook

import (
	"context"
	"fmt"

	"github.com/entail-dev/entail/services/internal/admission"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/rbac"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/webhook/internal/validating"
)

// admissionWebhooks checks changes that give rights, from the start of the process, even without NATS.
type admissionWebhooks struct {
	cfg   Config
	guard validating.Validator
	// server is nil if webhooks are not configured.
	server *admission.Server
}

// openAdmissionServer implements [service.EarlyTask].
func (w *admissionWebhooks) openAdmissionServer(rt *service.Runtime) (func(context.Context) error, error) {
	if !w.cfg.Admission.Enabled() {
		return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
	}
	var err error
	w.server, err = admission.New(w.cfg.Admission, admission.Options{
		Name: validating.Name, Webhooks: w.guard.Webhooks(), Namespace: rbac.Namespace, Kube: rt.Kube, Log: rt.Log, Metrics: rt.Metrics,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the webhooks: %w", err)
	}
	return w.server.Run, nil
}

// connectValidator lets the guard use the index while the informer holds everything that the stream's leader has.
func (w *admissionWebhooks) connectValidator(s *accessServer) {
	w.guard.SetInputs(validating.ValidatorInputs{
		Index: func(ctx context.Context) (*authz.Index, error) {
			if err := s.view.CheckCurrent(ctx); err != nil {
				return nil, err
			}
			return s.state.currentIndex()
		},
		Identity: s.rules.IdentifySubject,
	})
}

// registrationErr returns nil if the webhooks are registered, or not configured.
func (w *admissionWebhooks) registrationErr() error {
	if w.server == nil {
		return nil
	}
	return fault.Unavailable(w.server.RegistrationErr())
}
