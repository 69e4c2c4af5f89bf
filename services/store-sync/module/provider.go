// Package module is what every provider of modules has in common: how it is asked for them, the
// Stores and AuthorizationModels that it reads, and how AuthorizationModels are made.
package module

import (
	"context"

	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module/plan"
)

// Provider gives modules to the models of Stores: as AuthorizationModels that it makes, or as they are.
type Provider interface {
	// Keys lists the Stores whose modules an object has a part in.
	Keys(object event.Key) []event.Key
	// Sync makes the AuthorizationModels that carry the provider's modules in a Store, and lists
	// the objects behind them. What fails for one of them holds up no other.
	Sync(ctx context.Context, p consume.Reporter, store event.Key) ([]Member, error)
	// Modules are those that go into the Store's model as they are, with statements on the objects that they
	// were made from. Until they are ready, there can be no model.
	Modules(store event.Key) (modules []model.Module, made []confirm.Statement, ready bool)
	// Missing states of what Modules leaves out that it is not there, or is to go: it asks the API server for what else has a
	// part in the model, so that no message, and none that never came, takes anything from it.
	Missing(ctx context.Context, store event.Key) ([]confirm.Statement, error)
}

// Member is an object whose status tells what became of its module.
type Member struct {
	event.Change

	Kind kinds.Kind
	// Statement says what was decided from.
	Statement confirm.Statement
	// Carrier is the AuthorizationModel that its module is in; zero if there is none.
	Carrier event.Key
	// Status is what its status must be after a verdict on the carrier.
	Status func(plan.Verdict) plan.Status
}
