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
	// AffectedKeys lists the Stores whose modules an object affects.
	AffectedKeys(object event.Key) []event.Key
	// SyncModels applies the AuthorizationModels that carry the provider's modules in a Store, and lists the objects behind
	// them. An error for one of them does not stop the others.
	SyncModels(ctx context.Context, p controller.UntypedRequest, store event.Key) ([]StatusTarget, error)
	// DirectModules returns the modules that go into the Store's model directly. Until ready is true, no model can be made.
	DirectModules(store event.Key) (modules []model.Module, ready bool)
}

// StatusTarget is an object whose status reports the state of its module.
type StatusTarget struct {
	event.Change

	Kind kinds.Kind
	// Expected is the state of the object from which the module was made.
	Expected verify.ExpectedState
	// Carrier is the AuthorizationModel that holds the module. It is zero if none does.
	Carrier event.Key
	// Status returns the desired status of this object for the verdict on its carrier.
	Status func(plan.Verdict) plan.ObjectStatus
}
