package impliedrole

import (
	"context"
	"fmt"
	"time"

	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/implied-role/internal/validating"
	"github.com/entail-dev/entail/services/internal/admission"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/rbac"
	"github.com/entail-dev/entail/services/internal/service"
)

// admissionWebhooks checks the authors of rules and bindings from the start of the process, even without NATS. The guard and the
// server are nil if webhooks are not configured.
type admissionWebhooks struct {
	cfg    Config
	guard  *validating.Validator
	server *admission.Server
}

// openAdmissionServer implements [service.EarlyTask].
func (w *admissionWebhooks) openAdmissionServer(rt *service.Runtime) (func(context.Context) error, error) {
	if !w.cfg.Admission.Enabled() {
		return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
	}
	var err error
	if w.guard, err = validating.New(rt.Kube, w.cfg.Policy); err != nil {
		return nil, err
	}
	w.server, err = admission.New(w.cfg.Admission, admission.Options{
		Name: validating.Name, Webhooks: w.guard.Webhooks(), Namespace: rbac.Namespace, Kube: rt.Kube, Log: rt.Log, Metrics: rt.Metrics,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the webhooks: %w", err)
	}
	w.guard.SetRefresh(w.server.RefreshRegistration)
	return w.server.Run, nil
}

// connectValidator lets the guard use the informer.
func (w *admissionWebhooks) connectValidator(v *informer.Informer, s *state.State) {
	if w.guard != nil {
		w.guard.UseInformer(v, s)
	}
}

// coverNamespace returns nil if the webhooks are in force in a namespace, or not configured.
func (w *admissionWebhooks) coverNamespace(ctx context.Context, namespace string) error {
	if w.server == nil {
		return nil
	}
	err := w.server.RegistrationErr()
	if err == nil {
		err = w.guard.EnsureNamespaceCovered(ctx, namespace)
	}
	return fault.Unavailable(err)
}

// authorsCheckedSince returns the time since which every author of a rule is checked, or zero if webhooks are not configured. If look
// is true, it registers them again first. Otherwise, a removal just before a write could go unnoticed.
func (w *admissionWebhooks) authorsCheckedSince(ctx context.Context, look bool) (time.Time, error) {
	if w.server == nil {
		return time.Time{}, nil
	}
	if look {
		if err := w.server.RefreshRegistration(ctx); err != nil {
			return time.Time{}, err
		}
	}
	return w.server.EnforcedSince()
}

// bindingAuthorsCheckedSince returns the time since which every author of a binding is checked. It returns now if the webhooks are
// not in force, and zero if they are not configured.
func (w *admissionWebhooks) bindingAuthorsCheckedSince(ctx context.Context) time.Time {
	since, err := w.authorsCheckedSince(ctx, false)
	if err != nil {
		return time.Now()
	}
	return since
}

// registrationErr returns nil if the webhooks are registered, or not configured.
func (w *admissionWebhooks) registrationErr() error {
	if w.server == nil {
		return nil
	}
	return fault.Unavailable(w.server.RegistrationErr())
}
