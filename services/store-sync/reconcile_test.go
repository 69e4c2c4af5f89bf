package storesync

import (
	"context"
	"errors"
	"testing"

	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
)

// unstableProvider is a provider whose objects change a number of times during a pass.
type unstableProvider struct{ changes, syncs int }

func (r *unstableProvider) AffectedKeys(event.Key) []event.Key { return nil }

func (r *unstableProvider) SyncModels(context.Context, controller.UntypedRequest, event.Key) ([]module.StatusTarget, error) {
	if r.syncs++; r.syncs <= r.changes {
		return nil, reconcile.ErrStale
	}
	return nil, nil
}

func (r *unstableProvider) DirectModules(event.Key) ([]model.Module, bool) { return nil, false }

func TestProviderReplansStaleObjects(t *testing.T) {
	provider := &unstableProvider{changes: 2}
	r := &reconciler{providers: []module.Provider{provider}}
	if err := r.Reconcile(t.Context(), controller.NewRequest(nil, event.Key{}, false)); err != nil || provider.syncs != 3 {
		t.Errorf("%v after %d attempts", err, provider.syncs)
	}
}

func TestUnstableProviderIsUnavailable(t *testing.T) {
	r := &reconciler{providers: []module.Provider{&unstableProvider{changes: 1000}}}
	err := r.Reconcile(t.Context(), controller.NewRequest(nil, event.Key{}, false))
	if !errors.Is(err, reconcile.ErrStale) || !fault.IsUnavailable(err) {
		t.Errorf("%v would end as a dead letter", err)
	}
}
