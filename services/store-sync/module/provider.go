// Package module holds what the providers of modules share: their interface, the Stores and AuthorizationModels that
// they read, and the generation of AuthorizationModels.
package module

import (
	"context"

	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module/plan"
)

// Provider adds modules to the models of Stores, either as AuthorizationModels that it generates, or directly.
type Provider interface {
	// Keys lists the Stores whose modules an object affects.
	Keys(object event.Key) []event.Key
	// Sync applies the AuthorizationModels that carry the provider's modules in a Store, and lists the objects behind
	// them. An error for one of them does not stop the others.
	Sync(ctx context.Context, p controller.Reporter, store event.Key) ([]Member, error)
	// Modules returns the modules that go into the Store's model directly. Until ready is true, no model can be made.
	Modules(store event.Key) (modules []model.Module, ready bool)
}

// Member is an object whose status reports the state of its module.
type Member struct {
	event.Change

	Kind kinds.Kind
	// Expected is the state of the object from which the module was made.
	Expected verify.Expected
	// Carrier is the AuthorizationModel that holds the module. It is zero if none does.
	Carrier event.Key
	// Status returns the desired status of this object for the verdict on its carrier.
	Status func(plan.Verdict) plan.Status
}
