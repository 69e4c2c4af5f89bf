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

// Lease is the name of the Lease by which replicas of the watcher elect their leader.
const Lease = "entail-watcher"

// Accounts returns the accounts of all services.
func Accounts() []Account {
	return []Account{watcherAccount(), storeSync(), tupleSync(), impliedRole(), webhookAccount(), opensearchSync()}
}

func watcherAccount() Account {
	var all []event.GroupResource
	for _, kind := range kinds.All() {
		all = append(all, kind.GroupResource)
	}
	group := coordinationv1.GroupName
	return Account{
		Service: topology.Watcher,
		Everywhere: slices.Concat(commonRights(), []Right{eventsRight()},
			rightsOnKinds("Every change is published; a replay reads one object.", verbList("get", "list", "watch"), all)),
		Own: []Right{
			resourceRight("Replicas elect a leader by a Lease, which has no name while it is made.", verbList("create"), group, "leases"),
			rightOnName(resourceRight("The leader renews it.", verbList("get", "update"), group, "leases"), Lease),
		},
		Targets: true,
		Secrets: []Right{resourceRight("That one has changed is published of those that objects name, and nothing of what is in it.",
			verbList("list", "watch"), corev1.GroupName, "secrets")},
	}
}

func storeSync() Account {
	group := corev1alpha1.GroupVersion.Group
	bindings, documents, protected := kinds.Bindings().GroupResource, kinds.PolicyDocuments().GroupResource, kinds.ProtectedResources().GroupResource
	return Account{
		Service: topology.StoreSync,
		Everywhere: slices.Concat(commonRights(), consumerRights(topology.StoreSync), []Right{
			eventsRight(),
			resourceRight("A Store is held by a finalizer while its OpenFGA store is there.", verbList("patch"), group, corev1alpha1.Stores),
			resourceRight("The Store of IAM is made for want of one.", verbList("create"), group, corev1alpha1.Stores),
			resourceRight("The Store of IAM says whose it is: admission asks who declares that.", verbList("adopt"), group, corev1alpha1.Stores),
			resourceRight("A label, an APIBinding or a document may extend any: admission asks who writes it.", verbList("extend"), group, corev1alpha1.Stores),
			resourceRight("Modules of APIs and policies are AuthorizationModels.", verbList("create", "patch", "delete"), group, corev1alpha1.AuthorizationModels),
			resourceRight("A live module leaves a model only if the API server lists it no more.", verbList("list"), group, corev1alpha1.AuthorizationModels),
			statusRight(group, corev1alpha1.Stores, corev1alpha1.AuthorizationModels),
			resourceRight("OpenFGA stores and live texts are recorded in them: admission asks who does it.", verbList("record"), group,
				corev1alpha1.Stores, corev1alpha1.AuthorizationModels),
			statusRight(documents.Group, documents.Resource),
			statusRight(protected.Group, protected.Resource),
			resourceRight("What a ProtectedResource has is recorded there: admission asks who says so.", verbList("record"), protected.Group, protected.Resource),
			resourceRight("A live kind leaves the model only if the API server lists it no more.", verbList("list"), protected.Group, protected.Resource),
			resourceRight("A ProtectedResource is let go that software which is gone holds.", verbList("patch"), protected.Group, protected.Resource),
			resourceRight("An APIBinding is held by a finalizer while modules are made from it.", verbList("patch"), bindings.Group, bindings.Resource),
			registrationRight("entail-store-sync"),
		}),
		Own: []Right{certificateRight("entail-store-sync")},
	}
}

func tupleSync() Account {
	group, owners := corev1alpha1.GroupVersion.Group, []string{corev1alpha1.Stores, corev1alpha1.AuthorizationModels}
	iam := kinds.IAMRoles().GroupResource
	return Account{
		Service: topology.TupleSync,
		Everywhere: slices.Concat(commonRights(), consumerRights(topology.TupleSync), []Right{
			eventsRight(),
			resourceRight("Who declares tuples is held by a finalizer while they are there.", verbList("patch"), group, owners...),
			statusRight(group, owners...),
			resourceRight("Tuples are recorded in them: admission asks who does it.", verbList("record"), group, owners...),
			resourceRight("Whom software holds that is gone is let go.", verbList("patch"), iam.Group,
				iam.Resource, kinds.PolicyBindings().Resource, kinds.GroupMemberships().Resource, kinds.Users().Resource, kinds.IAMServiceAccounts().Resource),
			resourceRight("The same of what belongs to an organization.", verbList("patch"), kinds.Projects().Group, kinds.Projects().Resource),
			resourceRight("In a membership is recorded for which User it is: admission asks who says so.", verbList("record"), iam.Group,
				kinds.GroupMemberships().Resource),
			resourceRight("In a project to whom it belongs.", verbList("record"), kinds.Projects().Group, kinds.Projects().Resource),
			statusRight(kinds.Projects().Group, kinds.Projects().Resource, kinds.Organizations().Resource),
			statusRight(iam.Group, iam.Resource, kinds.PolicyBindings().Resource, kinds.GroupMemberships().Resource, kinds.ProtectedResources().Resource,
				kinds.Users().Resource, kinds.IAMServiceAccounts().Resource, kinds.Groups().Resource),
		}),
	}
}

func impliedRole() Account {
	rules, bindings, roles := kinds.ImpliedRoles().GroupResource, kinds.RoleBindings().GroupResource, kinds.Roles().GroupResource
	return Account{
		Service: topology.ImpliedRole,
		Everywhere: slices.Concat(commonRights(), consumerRights(topology.ImpliedRole), []Right{
			eventsRight(),
			statusRight(rules.Group, rules.Resource),
			resourceRight("A query compares what is there with what follows from the rules.", verbList("list"), rules.Group, rules.Resource),
			resourceRight("The same of RoleBindings, which are made where they follow.", verbList("list", "create", "patch", "delete"),
				bindings.Group, bindings.Resource),
			resourceRight("Any role may follow from a rule: admission asks who writes it. Nothing is changed in a role.",
				verbList("bind"), roles.Group, roles.Resource, kinds.ClusterRoles().Resource),
			resourceRight("Who writes a rule or binds a role may hold what follows by these.", verbList("list"), roles.Group,
				"clusterrolebindings", roles.Resource, kinds.ClusterRoles().Resource),
			registrationRight("entail-implied-role"),
		}),
		Own: []Right{certificateRight("entail-implied-role")},
	}
}

func webhookAccount() Account {
	return Account{
		Service: topology.Webhook, Everywhere: slices.Concat(commonRights(), consumerRights(topology.Webhook), []Right{registrationRight("entail-webhook")}),
		Own: []Right{certificateRight("entail-webhook")},
	}
}

// registrationRight and certificate return the rights of a service with admission webhooks.
func registrationRight(configuration string) Right {
	return rightOnName(resourceRight("The webhooks that judge what is written are registered here.", verbList("get", "update", "patch", "create"),
		admissionregistrationv1.GroupName, "validatingwebhookconfigurations"), configuration)
}

func certificateRight(configuration string) Right {
	return rightOnName(resourceRight("Replicas share the certificate of the webhooks.", verbList("get", "patch", "create"), corev1.GroupName, "secrets"),
		configuration+"-admission")
}

func opensearchSync() Account {
	declared := []string{opensearchv1.Users, opensearchv1.Roles, opensearchv1.Bindings, opensearchv1.Tenants, opensearchv1.ActionGroups}
	rights := []Right{eventsRight()}
	for _, group := range []string{opensearchv1.GroupVersion.Group, opensearchv1.LegacyGroup} {
		rights = append(rights,
			resourceRight("What asks for something in OpenSearch is held by a finalizer while that is there.", verbList("patch"), group, declared...),
			statusRight(group, declared...))
	}
	rights = append(rights, statusRight(opensearchv1.GroupVersion.Group, opensearchv1.Clusters),
		resourceRight("What was made for an object is recorded in an annotation: admission asks who does it.", verbList("record"),
			opensearchv1.GroupVersion.Group, declared...))
	return Account{
		Service: topology.OpensearchSync, Everywhere: slices.Concat(commonRights(), consumerRights(topology.OpensearchSync), rights),
		Secrets: []Right{resourceRight("Users have their passwords in Secrets, and clusters how they are reached.", verbList("get"),
			corev1.GroupName, "secrets")},
	}
}

// commonRights returns the rights that every service has.
func commonRights() []Right {
	create := verbList("create")
	return []Right{
		rightOnName(resourceRight("The UID of this namespace is the cluster's identity.", verbList("get"), corev1.GroupName, "namespaces"),
			metav1.NamespaceSystem),
		resourceRight("Who calls the query API?", create, authenticationv1.GroupName, "tokenreviews"),
		resourceRight("May they ask this?", create, authorizationv1.GroupName, "subjectaccessreviews"),
	}
}

// consumerRights returns the rights to read objects that were too large for NATS. Kinds that are published by name alone need
// none.
func consumerRights(service string) []Right {
	s, _ := topology.ServiceNamed(service)
	large := slices.DeleteFunc(slices.Clone(s.Kinds), func(r event.GroupResource) bool {
		kind, _ := kinds.Of(r)
		return kind.Named
	})
	return rightsOnKinds("What is too large for the bus is read here.", verbList("get"), large)
}

func eventsRight() Right {
	return resourceRight("People are told of what happened.", verbList("create"), corev1.GroupName, "events")
}

func statusRight(group string, resources ...string) Right {
	r := resourceRight("What became of an object is in its status.", verbList("patch"), group)
	for _, resource := range resources {
		r.Resources = append(r.Resources, resource+"/status")
	}
	return r
}

func verbList(verbList ...string) []string { return verbList }
