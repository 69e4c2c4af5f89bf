package kinds

import (
	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/event"
)

// OpenSearch lists every kind that says who may do what in OpenSearch.
func OpenSearch() []Kind {
	return []Kind{
		OpenSearchClusters(), OpenSearchUsers(), OpenSearchRoles(), OpenSearchBindings(), OpenSearchTenants(), OpenSearchActionGroups(),
	}
}

// LegacyOpenSearch lists the same kinds as the public operator had them before.
func LegacyOpenSearch() []Kind {
	all := OpenSearch()
	for i := range all {
		all[i] = Legacy(all[i])
	}
	return all
}

// Legacy is a kind of [OpenSearch] in the group that it had before.
func Legacy(kind Kind) Kind {
	kind.Group, kind.Optional = opensearchv1.LegacyGroup, true
	return kind
}

// Secrets is the kind Secret, of which only matters that one has changed: its values are read where they are needed.
func Secrets() Kind {
	return Kind{
		GroupResource: event.GroupResource{Resource: "secrets"}, Version: "v1", Kind: "Secret",
		MetadataOnly: true, Named: true, Optional: true,
	}
}

// OpenSearchClusters is the kind OpenSearchCluster.
func OpenSearchClusters() Kind { return openSearch(opensearchv1.Clusters, "OpenSearchCluster") }

// OpenSearchUsers is the kind OpensearchUser.
func OpenSearchUsers() Kind { return openSearch(opensearchv1.Users, "OpensearchUser") }

// OpenSearchRoles is the kind OpensearchRole.
func OpenSearchRoles() Kind { return openSearch(opensearchv1.Roles, "OpensearchRole") }

// OpenSearchBindings is the kind OpensearchUserRoleBinding.
func OpenSearchBindings() Kind {
	return openSearch(opensearchv1.Bindings, "OpensearchUserRoleBinding")
}

// OpenSearchTenants is the kind OpensearchTenant.
func OpenSearchTenants() Kind { return openSearch(opensearchv1.Tenants, "OpensearchTenant") }

// OpenSearchActionGroups is the kind OpensearchActionGroup.
func OpenSearchActionGroups() Kind {
	return openSearch(opensearchv1.ActionGroups, "OpensearchActionGroup")
}

func openSearch(resource, kind string) Kind {
	gv := opensearchv1.GroupVersion
	return Kind{GroupResource: event.GroupResource{Group: gv.Group, Resource: resource}, Version: gv.Version, Kind: kind, Status: true}
}
