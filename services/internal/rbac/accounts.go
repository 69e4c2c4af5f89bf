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
	return []Account{watcher(), storeSync(), tupleSync(), impliedRole(), webhook(), opensearchSync()}
}

func watcher() Account {
	var all []event.GroupResource
	for _, kind := range kinds.All() {
		all = append(all, kind.GroupResource)
	}
	group := coordinationv1.GroupName
	return Account{
		Service: topology.Watcher,
		Everywhere: slices.Concat(common(), []Right{events()},
			each("Every change is published; a replay reads one object.", verbs("get", "list", "watch"), all)),
		Own: []Right{
			may("Replicas elect a leader by a Lease, which has no name while it is made.", verbs("create"), group, "leases"),
			named(may("The leader renews it.", verbs("get", "update"), group, "leases"), Lease),
		},
		Targets: true,
		Secrets: []Right{may("That one has changed is published of those that objects name, and nothing of what is in it.",
			verbs("list", "watch"), corev1.GroupName, "secrets")},
	}
}

func storeSync() Account {
	group := corev1alpha1.GroupVersion.Group
	bindings, documents, protected := kinds.Bindings().GroupResource, kinds.PolicyDocuments().GroupResource, kinds.ProtectedResources().GroupResource
	return Account{
		Service: topology.StoreSync,
		Everywhere: slices.Concat(common(), consumed(topology.StoreSync), []Right{
			events(),
			may("A Store is held by a finalizer while its OpenFGA store is there.", verbs("patch"), group, corev1alpha1.Stores),
			may("The Store of IAM is made for want of one.", verbs("create"), group, corev1alpha1.Stores),
			may("The Store of IAM says whose it is: admission asks who declares that.", verbs("adopt"), group, corev1alpha1.Stores),
			may("A label, an APIBinding or a document may extend any: admission asks who writes it.", verbs("extend"), group, corev1alpha1.Stores),
			may("Modules of APIs and policies are AuthorizationModels.", verbs("create", "patch", "delete"), group, corev1alpha1.AuthorizationModels),
			may("A live module leaves a model only if the API server lists it no more.", verbs("list"), group, corev1alpha1.AuthorizationModels),
			statuses(group, corev1alpha1.Stores, corev1alpha1.AuthorizationModels),
			may("OpenFGA stores and live texts are recorded in them: admission asks who does it.", verbs("record"), group,
				corev1alpha1.Stores, corev1alpha1.AuthorizationModels),
			statuses(documents.Group, documents.Resource),
			statuses(protected.Group, protected.Resource),
			may("What a ProtectedResource has is recorded there: admission asks who says so.", verbs("record"), protected.Group, protected.Resource),
			may("A live kind leaves the model only if the API server lists it no more.", verbs("list"), protected.Group, protected.Resource),
			may("A ProtectedResource is let go that software which is gone holds.", verbs("patch"), protected.Group, protected.Resource),
			may("An APIBinding is held by a finalizer while modules are made from it.", verbs("patch"), bindings.Group, bindings.Resource),
			registered("entail-store-sync"),
		}),
		Own: []Right{certificate("entail-store-sync")},
	}
}

func tupleSync() Account {
	group, owners := corev1alpha1.GroupVersion.Group, []string{corev1alpha1.Stores, corev1alpha1.AuthorizationModels}
	iam := kinds.IAMRoles().GroupResource
	return Account{
		Service: topology.TupleSync,
		Everywhere: slices.Concat(common(), consumed(topology.TupleSync), []Right{
			events(),
			may("Who declares tuples is held by a finalizer while they are there.", verbs("patch"), group, owners...),
			statuses(group, owners...),
			may("Tuples are recorded in them: admission asks who does it.", verbs("record"), group, owners...),
			may("Whom software holds that is gone is let go.", verbs("patch"), iam.Group,
				iam.Resource, kinds.PolicyBindings().Resource, kinds.GroupMemberships().Resource, kinds.Users().Resource, kinds.IAMServiceAccounts().Resource),
			may("The same of what belongs to an organization.", verbs("patch"), kinds.Projects().Group, kinds.Projects().Resource),
			may("In a membership is recorded for which User it is: admission asks who says so.", verbs("record"), iam.Group, kinds.GroupMemberships().Resource),
			may("In a project to whom it belongs.", verbs("record"), kinds.Projects().Group, kinds.Projects().Resource),
			statuses(kinds.Projects().Group, kinds.Projects().Resource, kinds.Organizations().Resource),
			statuses(iam.Group, iam.Resource, kinds.PolicyBindings().Resource, kinds.GroupMemberships().Resource, kinds.ProtectedResources().Resource,
				kinds.Users().Resource, kinds.IAMServiceAccounts().Resource, kinds.Groups().Resource),
		}),
	}
}

func impliedRole() Account {
	rules, bindings, roles := kinds.ImpliedRoles().GroupResource, kinds.RoleBindings().GroupResource, kinds.Roles().GroupResource
	return Account{
		Service: topology.ImpliedRole,
		Everywhere: slices.Concat(common(), consumed(topology.ImpliedRole), []Right{
			events(),
			statuses(rules.Group, rules.Resource),
			may("A query compares what is there with what follows from the rules.", verbs("list"), rules.Group, rules.Resource),
			may("The same of RoleBindings, which are made where they follow.", verbs("list", "create", "patch", "delete"), bindings.Group, bindings.Resource),
			may("Any role may follow from a rule: admission asks who writes it. Nothing is changed in a role.",
				verbs("bind"), roles.Group, roles.Resource, kinds.ClusterRoles().Resource),
			may("Who writes a rule or binds a role may hold what follows by these.", verbs("list"), roles.Group,
				"clusterrolebindings", roles.Resource, kinds.ClusterRoles().Resource),
			registered("entail-implied-role"),
		}),
		Own: []Right{certificate("entail-implied-role")},
	}
}

func webhook() Account {
	return Account{
		Service: topology.Webhook, Everywhere: slices.Concat(common(), consumed(topology.Webhook), []Right{registered("entail-webhook")}),
		Own: []Right{certificate("entail-webhook")},
	}
}

// registered and certificate return the rights of a service with admission webhooks.
func registered(configuration string) Right {
	return named(may("The webhooks that judge what is written are registered here.", verbs("get", "update", "patch", "create"),
		admissionregistrationv1.GroupName, "validatingwebhookconfigurations"), configuration)
}

func certificate(configuration string) Right {
	return named(may("Replicas share the certificate of the webhooks.", verbs("get", "patch", "create"), corev1.GroupName, "secrets"),
		configuration+"-admission")
}

func opensearchSync() Account {
	declared := []string{opensearchv1.Users, opensearchv1.Roles, opensearchv1.Bindings, opensearchv1.Tenants, opensearchv1.ActionGroups}
	rights := []Right{events()}
	for _, group := range []string{opensearchv1.GroupVersion.Group, opensearchv1.LegacyGroup} {
		rights = append(rights,
			may("What asks for something in OpenSearch is held by a finalizer while that is there.", verbs("patch"), group, declared...),
			statuses(group, declared...))
	}
	rights = append(rights, statuses(opensearchv1.GroupVersion.Group, opensearchv1.Clusters),
		may("What was made for an object is recorded in an annotation: admission asks who does it.", verbs("record"),
			opensearchv1.GroupVersion.Group, declared...))
	return Account{
		Service: topology.OpensearchSync, Everywhere: slices.Concat(common(), consumed(topology.OpensearchSync), rights),
		Secrets: []Right{may("Users have their passwords in Secrets, and clusters how they are reached.", verbs("get"), corev1.GroupName, "secrets")},
	}
}

// common returns the rights that every service has.
func common() []Right {
	create := verbs("create")
	return []Right{
		named(may("The UID of this namespace is the cluster's identity.", verbs("get"), corev1.GroupName, "namespaces"), metav1.NamespaceSystem),
		may("Who calls the query API?", create, authenticationv1.GroupName, "tokenreviews"),
		may("May they ask this?", create, authorizationv1.GroupName, "subjectaccessreviews"),
	}
}

// consumed returns the rights to read objects that were too large for NATS. Kinds that are published by name alone need
// none.
func consumed(service string) []Right {
	s, _ := topology.ServiceNamed(service)
	large := slices.DeleteFunc(slices.Clone(s.Kinds), func(r event.GroupResource) bool {
		kind, _ := kinds.Of(r)
		return kind.Named
	})
	return each("What is too large for the bus is read here.", verbs("get"), large)
}

func events() Right {
	return may("People are told of what happened.", verbs("create"), corev1.GroupName, "events")
}

func statuses(group string, resources ...string) Right {
	r := may("What became of an object is in its status.", verbs("patch"), group)
	for _, resource := range resources {
		r.Resources = append(r.Resources, resource+"/status")
	}
	return r
}

func verbs(verbs ...string) []string { return verbs }
