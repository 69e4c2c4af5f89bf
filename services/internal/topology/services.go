package topology

import (
	"slices"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Service is a service that reads changes. Its name is also the name of its durable consumer.
type Service struct {
	Name  string
	Kinds []event.GroupResource
	// Targets means that the service also reads the objects of all target kinds.
	Targets bool
}

// Names of the services.
const (
	Watcher        = "watcher"
	StoreSync      = "store-sync"
	TupleSync      = "tuple-sync"
	ImpliedRole    = "implied-role"
	Webhook        = "webhook"
	OpensearchSync = "opensearch-sync"
)

// DurableServices lists the services with a durable consumer.
func DurableServices() []Service {
	core := []event.GroupResource{kinds.Stores().GroupResource, kinds.AuthorizationModels().GroupResource}
	roles := []event.GroupResource{
		kinds.ImpliedRoles().GroupResource, kinds.RoleBindings().GroupResource, kinds.ClusterRoleBindings().GroupResource,
		kinds.Roles().GroupResource, kinds.ClusterRoles().GroupResource,
	}
	policies := []event.GroupResource{kinds.PolicyDocuments().GroupResource}
	protected := []event.GroupResource{kinds.ProtectedResources().GroupResource}
	var iam []event.GroupResource
	for _, kind := range kinds.IAMKinds() {
		iam = append(iam, kind.GroupResource)
	}
	accounts := []event.GroupResource{kinds.AccountInfos().GroupResource}
	apis := []event.GroupResource{
		kinds.CustomResourceDefinitions().GroupResource, kinds.APIBindings().GroupResource, kinds.APIExports().GroupResource,
		kinds.APIResourceSchemas().GroupResource,
	}
	search := []event.GroupResource{kinds.Secrets().GroupResource}
	for _, kind := range slices.Concat(kinds.OpenSearchKinds(), kinds.LegacyOpenSearchKinds()) {
		search = append(search, kind.GroupResource)
	}
	return []Service{
		{Name: StoreSync, Kinds: slices.Concat(core, policies, protected, accounts, apis)},
		{Name: TupleSync, Kinds: slices.Concat(core, accounts, iam), Targets: true},
		{Name: ImpliedRole, Kinds: roles},
		{Name: OpensearchSync, Kinds: search},
	}
}

// ReaderServices lists the services that read changes only through an informer. They have no durable consumer, and
// every replica is active.
func ReaderServices() []Service {
	read := []event.GroupResource{kinds.Stores().GroupResource}
	for _, kind := range kinds.IAMKinds() {
		read = append(read, kind.GroupResource)
	}
	return []Service{{Name: Webhook, Kinds: read, Targets: true}}
}

// FindService returns the service with a name.
func FindService(name string) (Service, bool) {
	all := append(DurableServices(), ReaderServices()...)
	i := slices.IndexFunc(all, func(s Service) bool { return s.Name == name })
	if i < 0 {
		return Service{}, false
	}
	return all[i], true
}
