package rbac

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

// WatcherLease is the name of the Lease by which the watcher's replicas elect their leader.
const WatcherLease = "entail-watcher"

// ServiceAccounts returns the accounts of all services.
func ServiceAccounts() []ServiceAccount {
	return []ServiceAccount{watcherAccount(), storeSyncAccount(), tupleSyncAccount(), impliedRoleAccount(), webhookAccount(), opensearchSyncAccount()}
}

func watcherAccount() ServiceAccount {
	var all []event.GroupResource
	for _, kind := range kinds.ConsumedKinds() {
		all = append(all, kind.GroupResource)
	}
	group := coordinationv1.GroupName
	return ServiceAccount{
		Service: topology.Watcher,
		Everywhere: slices.Concat(rightsOfEveryService(), []Right{eventsRight()},
			rightsOnKinds("The watcher publishes every change. A replay reads one object.",
				verbList("get", "list", "watch"), all)),
		Own: []Right{
			resourceRight("Replicas elect a leader by a Lease. RBAC cannot restrict a creation to a name.", verbList("create"), group, "leases"),
			withResourceName(resourceRight("The leader renews the Lease.", verbList("get", "update"), group, "leases"), WatcherLease),
		},
		Targets: true,
		Secrets: []Right{resourceRight("The watcher publishes that a Secret changed, if an object names it. It publishes no content of a Secret.",
			verbList("list", "watch"), corev1.GroupName, "secrets")},
	}
}

func storeSyncAccount() ServiceAccount {
	group := corev1alpha1.GroupVersion.Group
	bindings, documents, protected := kinds.APIBindings().GroupResource, kinds.PolicyDocuments().GroupResource, kinds.ProtectedResources().GroupResource
	return ServiceAccount{
		Service: topology.StoreSync,
		Everywhere: slices.Concat(rightsOfEveryService(), largeObjectRights(topology.StoreSync), []Right{
			eventsRight(),
			resourceRight("store-sync adds a finalizer to a Store while its OpenFGA store exists.", verbList("patch"), group, corev1alpha1.Stores),
			resourceRight("store-sync creates the Store of IAM if none exists.", verbList("create"), group, corev1alpha1.Stores),
			resourceRight("The Store of IAM names the cluster that owns it. Admission requires this verb for that.",
				verbList("adopt"), group, corev1alpha1.Stores),
			resourceRight("store-sync writes modules that extend any Store. Admission requires this verb for that.",
				verbList("extend"), group, corev1alpha1.Stores),
			resourceRight("store-sync keeps modules of APIs and policies in AuthorizationModels.", verbList("create", "patch", "delete"), group,
				corev1alpha1.AuthorizationModels),
			resourceRight("store-sync confirms that a live module no longer exists before the module leaves a model.", verbList("list"), group,
				corev1alpha1.AuthorizationModels),
			statusRight(group, corev1alpha1.Stores, corev1alpha1.AuthorizationModels),
			resourceRight("store-sync records OpenFGA stores and live texts here. Admission requires this verb for that.", verbList("record"), group,
				corev1alpha1.Stores, corev1alpha1.AuthorizationModels),
			statusRight(documents.Group, documents.Resource),
			statusRight(protected.Group, protected.Resource),
			resourceRight("store-sync records the live definition of a ProtectedResource here. Admission requires this verb for that.", verbList("record"),
				protected.Group, protected.Resource),
			resourceRight("store-sync confirms that a kind is no longer registered before it removes the kind.",
				verbList("list"), protected.Group, protected.Resource),
			resourceRight("store-sync removes the finalizers that an earlier controller left on ProtectedResources.",
				verbList("patch"), protected.Group, protected.Resource),
			resourceRight("store-sync adds a finalizer to an APIBinding while modules depend on it.", verbList("patch"), bindings.Group, bindings.Resource),
			webhookRegistrationRight("entail-store-sync"),
		}),
		Own: []Right{webhookCertificateRight("entail-store-sync")},
	}
}

func tupleSyncAccount() ServiceAccount {
	group, owners := corev1alpha1.GroupVersion.Group, []string{corev1alpha1.Stores, corev1alpha1.AuthorizationModels}
	iam := kinds.IAMRoles().GroupResource
	return ServiceAccount{
		Service: topology.TupleSync,
		Everywhere: slices.Concat(rightsOfEveryService(), largeObjectRights(topology.TupleSync), []Right{
			eventsRight(),
			resourceRight("tuple-sync adds a finalizer to an object while tuples of the object exist.", verbList("patch"), group, owners...),
			statusRight(group, owners...),
			resourceRight("tuple-sync records tuples here. Admission requires this verb for that.", verbList("record"), group, owners...),
			resourceRight("tuple-sync removes the finalizers that an earlier controller left.", verbList("patch"), iam.Group,
				iam.Resource, kinds.PolicyBindings().Resource, kinds.GroupMemberships().Resource, kinds.IAMUsers().Resource,
				kinds.IAMServiceAccounts().Resource),
			resourceRight("tuple-sync removes the finalizers that an earlier controller left on projects.",
				verbList("patch"), kinds.Projects().Group, kinds.Projects().Resource),
			resourceRight("tuple-sync records the User of a membership. Admission requires this verb for that.", verbList("record"), iam.Group,
				kinds.GroupMemberships().Resource),
			resourceRight("tuple-sync records the owner of a project. Admission requires this verb for that.",
				verbList("record"), kinds.Projects().Group, kinds.Projects().Resource),
			statusRight(kinds.Projects().Group, kinds.Projects().Resource, kinds.Organizations().Resource),
			statusRight(iam.Group, iam.Resource, kinds.PolicyBindings().Resource, kinds.GroupMemberships().Resource, kinds.ProtectedResources().Resource,
				kinds.IAMUsers().Resource, kinds.IAMServiceAccounts().Resource, kinds.IAMGroups().Resource),
		}),
	}
}

func impliedRoleAccount() ServiceAccount {
	rules, bindings, roles := kinds.ImpliedRoles().GroupResource, kinds.RoleBindings().GroupResource, kinds.Roles().GroupResource
	return ServiceAccount{
		Service: topology.ImpliedRole,
		Everywhere: slices.Concat(rightsOfEveryService(), largeObjectRights(topology.ImpliedRole), []Right{
			eventsRight(),
			resourceRight("A query checks whether the namespace that it names exists.", verbList("get"), corev1.GroupName, "namespaces"),
			statusRight(rules.Group, rules.Resource),
			resourceRight("A query compares existing RoleBindings with those that the rules require.", verbList("list"), rules.Group, rules.Resource),
			resourceRight("implied-role writes the RoleBindings that follow from rules. A query lists them.", verbList("list", "create", "patch", "delete"),
				bindings.Group, bindings.Resource),
			resourceRight("A rule can imply any role, so implied-role must be able to bind it. Admission checks the author of the rule.",
				verbList("bind"), roles.Group, roles.Resource, kinds.ClusterRoles().Resource),
			resourceRight("Admission checks whether the author of a rule or binding holds the implied roles.", verbList("list"), roles.Group,
				"clusterrolebindings", roles.Resource, kinds.ClusterRoles().Resource),
			webhookRegistrationRight("entail-implied-role"),
		}),
		Own: []Right{webhookCertificateRight("entail-implied-role")},
	}
}

func webhookAccount() ServiceAccount {
	return ServiceAccount{
		Service: topology.Webhook, Everywhere: slices.Concat(rightsOfEveryService(), largeObjectRights(topology.Webhook),
			[]Right{webhookRegistrationRight("entail-webhook")}),
		Own: []Right{webhookCertificateRight("entail-webhook")},
	}
}

// webhookRegistrationRight returns the right of a service to register its admission webhooks.
func webhookRegistrationRight(configuration string) Right {
	return withResourceName(resourceRight("The service registers its admission webhooks.", verbList("get", "update", "patch", "create"),
		admissionregistrationv1.GroupName, "validatingwebhookconfigurations"), configuration)
}

func webhookCertificateRight(configuration string) Right {
	return withResourceName(resourceRight("Replicas share the certificate of the webhooks in this Secret.",
		verbList("get", "patch", "create"), corev1.GroupName, "secrets"),
		configuration+"-admission")
}

func opensearchSyncAccount() ServiceAccount {
	declared := []string{opensearchv1.Users, opensearchv1.Roles, opensearchv1.Bindings, opensearchv1.Tenants, opensearchv1.ActionGroups}
	rights := []Right{eventsRight()}
	for _, group := range []string{opensearchv1.GroupVersion.Group, opensearchv1.LegacyGroup} {
		rights = append(rights,
			resourceRight("opensearch-sync adds a finalizer to an object while its data in OpenSearch exists.", verbList("patch"), group, declared...),
			statusRight(group, declared...))
	}
	rights = append(rights, statusRight(opensearchv1.GroupVersion.Group, opensearchv1.Clusters),
		resourceRight("opensearch-sync records the data of an object in an annotation. Admission requires this verb for that.", verbList("record"),
			opensearchv1.GroupVersion.Group, declared...))
	return ServiceAccount{
		Service: topology.OpensearchSync, Everywhere: slices.Concat(rightsOfEveryService(), largeObjectRights(topology.OpensearchSync), rights),
		Secrets: []Right{resourceRight("Secrets hold the passwords of users and the credentials of clusters.", verbList("get"),
			corev1.GroupName, "secrets")},
	}
}

// rightsOfEveryService returns the rights that every service has.
func rightsOfEveryService() []Right {
	create := verbList("create")
	return []Right{
		withResourceName(resourceRight("The UID of this namespace identifies the cluster.", verbList("get"), corev1.GroupName, "namespaces"),
			metav1.NamespaceSystem),
		resourceRight("The service authenticates the callers of its query API.", create, authenticationv1.GroupName, "tokenreviews"),
		resourceRight("The service checks the rights of these callers.", create, authorizationv1.GroupName, "subjectaccessreviews"),
	}
}

// largeObjectRights returns the rights to read objects that are too large for NATS. A kind that is published only by
// name needs none.
func largeObjectRights(service string) []Right {
	s, _ := topology.FindService(service)
	large := slices.DeleteFunc(slices.Clone(s.Kinds), func(r event.GroupResource) bool {
		kind, _ := kinds.ByResource(r)
		return kind.ReferencedOnly
	})
	return rightsOnKinds("The service reads objects that are too large for NATS.", verbList("get"), large)
}

func eventsRight() Right {
	return resourceRight("The service reports results as Events.", verbList("create"), corev1.GroupName, "events")
}

func statusRight(group string, resources ...string) Right {
	r := resourceRight("The service reports its results in the status.", verbList("patch"), group)
	for _, resource := range resources {
		r.Resources = append(r.Resources, resource+"/status")
	}
	return r
}

func verbList(verbs ...string) []string { return verbs }
