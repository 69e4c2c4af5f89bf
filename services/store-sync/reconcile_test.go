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

// restless is a provider whose objects change a number of times during a pass.
type restless struct{ changes, syncs int }

func (r *restless) AffectedKeys(event.Key) []event.Key { return nil }

func (r *restless) SyncModels(context.Context, controller.UntypedRequest, event.Key) ([]module.StatusTarget, error) {
	if r.syncs++; r.syncs <= r.changes {
		return nil, reconcile.ErrStale
	}
	return nil, nil
}

func (r *restless) DirectModules(event.Key) ([]model.Module, bool) { return nil, false }

func TestAProviderPlansAgainWhatChangesUnderIt(t *testing.T) {
	provider := &restless{changes: 2}
	r := &reconciler{providers: []module.Provider{provider}}
	if err := r.Reconcile(t.Context(), controller.NewRequest(nil, event.Key{}, false)); err != nil || provider.syncs != 3 {
		t.Errorf("%v after %d attempts", err, provider.syncs)
	}
}

func TestAProviderThatNeverComesToRestIsNobodysFault(t *testing.T) {
	r := &reconciler{providers: []module.Provider{&restless{changes: 1000}}}
	err := r.Reconcile(t.Context(), controller.NewRequest(nil, event.Key{}, false))
	if !errors.Is(err, reconcile.ErrStale) || !fault.IsUnavailable(err) {
		t.Errorf("%v would end as a dead letter", err)
	}
}
