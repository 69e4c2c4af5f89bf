package impliedrole

import (
	"context"
	"fmt"
	"time"

	"github.com/entail-dev/entail/services/implied-role/internal/guard"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/admission"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/rbac"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/view"
)

// webhooks judge who writes rules and binds roles, from the start, bus or no bus. Both fields but
// the configuration are nil where there are none.
type webhooks struct {
	cfg    Config
	guard  *guard.Guard
	server *admission.Server
}

// open implements [service.Early].
func (w *webhooks) open(rt *service.Runtime) (func(context.Context) error, error) {
	if !w.cfg.Admission.Enabled() {
		return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
	}
	var err error
	if w.guard, err = guard.New(rt.Kube, w.cfg.Policy); err != nil {
		return nil, err
	}
	w.server, err = admission.New(w.cfg.Admission, admission.Options{
		Name: guard.Name, Webhooks: w.guard.Webhooks(), Namespace: rbac.Namespace, Kube: rt.Kube, Log: rt.Log, Metrics: rt.Metrics,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the webhooks: %w", err)
	}
	w.guard.Extend(w.server.Refresh)
	return w.server.Run, nil
}

// follow lets them decide by what is in the view, too.
func (w *webhooks) follow(v *view.View, s *state.State) {
	if w.guard != nil {
		w.guard.Follow(v, s)
	}
}

// cover is nil while nobody in a namespace gets round them, or there are none.
func (w *webhooks) cover(ctx context.Context, namespace string) error {
	if w.server == nil {
		return nil
	}
	err := w.server.InForce()
	if err == nil {
		err = w.guard.Cover(ctx, namespace)
	}
	return fault.Unavailable(err)
}

// since is since when everybody is judged who writes rules, up to now; zero if there are none. Of what was just
// written it is to look: somebody may have taken the webhooks away a moment before, and nobody was judged.
func (w *webhooks) since(ctx context.Context, look bool) (time.Time, error) {
	if w.server == nil {
		return time.Time{}, nil
	}
	if look {
		if err := w.server.Refresh(ctx); err != nil {
			return time.Time{}, err
		}
	}
	return w.server.Since()
}

// guardedSince returns since when the webhooks judge all who bind roles, now if they are not in force, and zero without webhooks.
func (w *webhooks) guardedSince(ctx context.Context) time.Time {
	since, err := w.since(ctx, false)
	if err != nil {
		return time.Now()
	}
	return since
}

// inForce is nil while they are registered, or there are none.
func (w *webhooks) inForce() error {
	if w.server == nil {
		return nil
	}
	return fault.Unavailable(w.server.InForce())
}
