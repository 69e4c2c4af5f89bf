package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// UserRole is a ClusterRole for users.
type UserRole struct {
	Name string
	// PartOf is the Kubernetes ClusterRole, such as view, into which the role is aggregated. If it is empty, the role
	// must be bound separately.
	PartOf string
	Rights []Right
}

// UserRoles returns the roles for users. No role that is part of a Kubernetes role lets users give away more rights
// than they have.
//
// ImpliedRoles are part of admin, like RoleBindings, because implied-role checks that their author could bind the
// implied roles. Roles for IAM bindings and tuples must be bound separately: IAM bindings may name any namespace, and
// tuples can grant anything.
func UserRoles() []UserRole {
	stores, models := kinds.Stores().GroupResource, kinds.AuthorizationModels().GroupResource
	documents, rules := kinds.PolicyDocuments().GroupResource, kinds.ImpliedRoles().GroupResource
	var iam []event.GroupResource
	for _, kind := range kinds.IAMKinds() {
		iam = append(iam, kind.GroupResource)
	}
	var search []event.GroupResource
	for _, kind := range slices.Concat(kinds.OpenSearchKinds(), kinds.LegacyOpenSearchKinds()) {
		search = append(search, kind.GroupResource)
	}
	clusters := kinds.OpenSearchClusters().GroupResource
	bindings := []event.GroupResource{
		kinds.IAMRoles().GroupResource, kinds.PolicyBindings().GroupResource, kinds.IAMGroups().GroupResource, kinds.GroupMemberships().GroupResource,
	}
	read, write := verbList("get", "list", "watch"), verbList("create", "update", "patch", "delete", "deletecollection")
	all := slices.Concat(read, write)
	extend := resourceRight("Admission requires the verb extend of authors of objects that extend a Store.",
		verbList("get", "list", "watch", "extend"), stores.Group, stores.Resource)
	return []UserRole{
		{"entail-view", "view", rightsOnKinds("Readers see all declared objects and their statuses.", read,
			slices.Concat([]event.GroupResource{stores, models, documents, rules}, iam, search))},
		{"entail-edit", "edit", rightsOnKinds("A service registers its part of a policy. A policy alone gives no access.", write,
			[]event.GroupResource{documents})},
		{"entail-admin", "admin", rightsOnKinds(
			"A user with this right may write rules. Admission checks that the user may bind the implied roles.", write,
			[]event.GroupResource{rules})},
		{"entail-stores", "", append(rightsOnKinds(
			"Tuples can give any access that a store decides. Bind this role only to users that you trust with every store.",
			all, []event.GroupResource{stores, models}), extend)},
		{"entail-store-extender", "", append(rightsOnKinds(
			"A module defines which access follows from tuples. Bind this role only to users that you trust with every model.",
			all, []event.GroupResource{models, documents}), extend)},
		{"entail-iam-binder", "", rightsOnKinds(
			"A binding can name any object in any namespace. Only admission limits it, by the verbs bind and escalate.",
			write, bindings)},
		{"entail-iam", "", rightsOnKinds(
			"Bind this role only to users that you trust with all of IAM. It lacks bind and escalate on roles, groups and organizations.",
			all, iam)},
		{"entail-opensearch", "", rightsOnKinds(
			"Users, roles and role mappings of OpenSearch. Admission also requires get on Secrets and bind on roles, which this role lacks.",
			all, slices.DeleteFunc(slices.Clone(search), func(r event.GroupResource) bool { return r.Resource == clusters.Resource }))},
		{"entail-opensearch-clusters", "", []Right{
			resourceRight(
				"The author of a cluster receives the passwords that are sent to its address. The verb adopt takes over its content.",
				append(slices.Clone(all), "connect", "adopt"), clusters.Group, clusters.Resource),
			resourceRight("The same right on clusters of the legacy group. Admission requires the verbs connect and adopt in the new group.", all,
				opensearchv1.LegacyGroup, clusters.Resource),
		}},
		{"entail-policy", "", []Right{
			pathRight("Callers check and compile their own policy. The answer contains no data of this cluster.", "get", "/entail/policy"),
		}},
		{"entail-operator", "", []Right{
			pathRight("Operators read the progress of all services, and dead letters.", "get", "/entail/status", "/entail/deadletters"),
			pathRight("Operators discard dead letters.", "delete", "/entail/deadletters"),
			pathRight("Operators make services process an object again.", "post", "/entail/replay"),
			pathRight("Operators resume services that were halted because of forged messages.", "post", "/entail/bus/resume"),
		}},
	}
}

// pathRight returns a right on URL paths of the query APIs.
func pathRight(why, verb string, paths ...string) Right {
	return Right{Why: why, PolicyRule: rbacv1.PolicyRule{Verbs: verbList(verb), NonResourceURLs: paths}}
}
