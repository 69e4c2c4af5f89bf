package kinds

import (
	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/event"
)

// OpenSearchKinds lists the kinds of the OpenSearch operator that Entail serves.
func OpenSearchKinds() []Kind {
	return []Kind{
		OpenSearchClusters(), OpenSearchUsers(), OpenSearchRoles(), OpenSearchBindings(), OpenSearchTenants(), OpenSearchActionGroups(),
	}
}

// LegacyOpenSearchKinds lists the same kinds in the operator's earlier API group.
func LegacyOpenSearchKinds() []Kind {
	all := OpenSearchKinds()
	for i := range all {
		all[i] = ToLegacyOpenSearchKind(all[i])
	}
	return all
}

// ToLegacyOpenSearchKind returns a kind of [OpenSearchKinds] in the operator's earlier API group.
func ToLegacyOpenSearchKind(kind Kind) Kind {
	kind.Group, kind.Optional = opensearchv1.LegacyGroup, true
	return kind
}

// Secrets returns the kind Secret. The watcher publishes only that a Secret changed. Services read its values when
// they need them.
func Secrets() Kind {
	return Kind{
		GroupResource: event.GroupResource{Resource: "secrets"}, Version: "v1", Kind: "Secret",
		MetadataOnly: true, ReferencedOnly: true, Optional: true,
	}
}

// OpenSearchClusters returns the kind OpenSearchCluster.
func OpenSearchClusters() Kind { return openSearchKind(opensearchv1.Clusters, "OpenSearchCluster") }

// OpenSearchUsers returns the kind OpensearchUser.
func OpenSearchUsers() Kind { return openSearchKind(opensearchv1.Users, "OpensearchUser") }

// OpenSearchRoles returns the kind OpensearchRole.
func OpenSearchRoles() Kind { return openSearchKind(opensearchv1.Roles, "OpensearchRole") }

// OpenSearchBindings returns the kind OpensearchUserRoleBinding.
func OpenSearchBindings() Kind {
	return openSearchKind(opensearchv1.Bindings, "OpensearchUserRoleBinding")
}

// OpenSearchTenants returns the kind OpensearchTenant.
func OpenSearchTenants() Kind { return openSearchKind(opensearchv1.Tenants, "OpensearchTenant") }

// OpenSearchActionGroups returns the kind OpensearchActionGroup.
func OpenSearchActionGroups() Kind {
	return openSearchKind(opensearchv1.ActionGroups, "OpensearchActionGroup")
}

func openSearchKind(resource, kind string) Kind {
	gv := opensearchv1.GroupVersion
	return Kind{GroupResource: event.GroupResource{Group: gv.Group, Resource: resource}, Version: gv.Version, Kind: kind, Status: true}
}
