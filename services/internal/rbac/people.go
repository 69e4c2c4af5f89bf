package rbac

import (
	"bytes"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Role is a ClusterRole for people.
type Role struct {
	Name string
	// PartOf is a ClusterRole of Kubernetes, such as view, into which the role is aggregated. If it is empty, the role
	// must be bound by itself.
	PartOf string
	Rights []Right
}

// Roles returns the roles for people. With none of them can a person give away more than they have. ImpliedRoles are
// part of admin, like RoleBindings: implied-role checks that the author could bind everything that follows. IAM
// bindings reach beyond their namespace, and authors of tuples can grant anything, so these are part of no role of
// Kubernetes.
func Roles() []Role {
	stores, models := kinds.Stores().GroupResource, kinds.AuthorizationModels().GroupResource
	documents, rules := kinds.PolicyDocuments().GroupResource, kinds.ImpliedRoles().GroupResource
	var iam []event.GroupResource
	for _, kind := range kinds.IAM() {
		iam = append(iam, kind.GroupResource)
	}
	var search []event.GroupResource
	for _, kind := range slices.Concat(kinds.OpenSearch(), kinds.LegacyOpenSearch()) {
		search = append(search, kind.GroupResource)
	}
	clusters := kinds.OpenSearchClusters().GroupResource
	bindings := []event.GroupResource{
		kinds.IAMRoles().GroupResource, kinds.PolicyBindings().GroupResource, kinds.Groups().GroupResource, kinds.GroupMemberships().GroupResource,
	}
	read, write := verbList("get", "list", "watch"), verbList("create", "update", "patch", "delete", "deletecollection")
	all := slices.Concat(read, write)
	extend := resourceRight("Admission asks for it who writes what extends a Store.", verbList("get", "list", "watch", "extend"), stores.Group, stores.Resource)
	return []Role{
		{"entail-view", "view", rightsOnKinds("What is declared, and what became of it.", read,
			slices.Concat([]event.GroupResource{stores, models, documents, rules}, iam, search))},
		{"entail-edit", "edit", rightsOnKinds("A service registers its part of a policy, which gives nobody anything.", write,
			[]event.GroupResource{documents})},
		{"entail-admin", "admin", rightsOnKinds(
			"Whoever binds roles also says which imply which; implied-role asks whether they could bind what follows.", write,
			[]event.GroupResource{rules})},
		{"entail-stores", "", append(rightsOnKinds("Tuples give whatever a store is asked about: this is for whom you trust with every store.", all,
			[]event.GroupResource{stores, models}), extend)},
		{"entail-store-extender", "", append(rightsOnKinds("A part of a model says what follows from tuples: this is for whom you trust with every model.", all,
			[]event.GroupResource{models, documents}), extend)},
		{"entail-iam-binder", "", rightsOnKinds(
			"A binding can be on any object, of whatever namespace: only admission asks who gives what, by bind and escalate, which are given beside it.",
			write, bindings)},
		{"entail-iam", "", rightsOnKinds(
			"Kinds, people and roles are for whom you trust with all of IAM; bind and escalate on roles, groups and organizations are given beside it.",
			all, iam)},
		{"entail-opensearch", "", rightsOnKinds(
			"Users, roles and who has them in OpenSearch: admission asks for get on Secrets and bind on roles, which are given beside it.",
			all, slices.DeleteFunc(slices.Clone(search), func(r event.GroupResource) bool { return r.Resource == clusters.Resource }))},
		{"entail-opensearch-clusters", "", []Right{
			resourceRight(
				"Whoever says where OpenSearch is gets the passwords sent there; who takes over what is in it may do with it what they like.",
				append(slices.Clone(all), "connect", "adopt"), clusters.Group, clusters.Resource),
			resourceRight("The same of clusters that are declared as they were before; the verbs are asked of the new group.", all,
				opensearchv1.LegacyGroup, clusters.Resource),
		}},
		{"entail-policy", "", []Right{
			pathRight("A policy that one brings along is checked and compiled; it says nothing of this cluster.", "get", "/entail/policy"),
		}},
		{"entail-operator", "", []Right{
			pathRight("Does everything run, and what could not be processed?", "get", "/entail/status", "/entail/deadletters"),
			pathRight("What asks for nothing any more is put away.", "delete", "/entail/deadletters"),
			pathRight("What is as it should be can be processed again.", "post", "/entail/replay"),
			pathRight("After forged messages services go on once somebody has dealt with them.", "post", "/entail/bus/resume"),
		}},
	}
}

// pathRight returns a right on URL paths of the query APIs.
func pathRight(why, verb string, paths ...string) Right {
	return Right{Why: why, PolicyRule: rbacv1.PolicyRule{Verbs: verbList(verb), NonResourceURLs: paths}}
}

// RolesManifest returns the roles for people as YAML for kubectl apply.
func RolesManifest() ([]byte, error) {
	var objects []any
	for _, r := range Roles() {
		labels := map[string]string{"app.kubernetes.io/part-of": "entail"}
		if r.PartOf != "" {
			labels["rbac.authorization.k8s.io/aggregate-to-"+r.PartOf] = "true"
		}
		objects = append(objects, role{
			TypeMeta:   typeOf(rbacv1.SchemeGroupVersion.String(), "ClusterRole"),
			ObjectMeta: metav1.ObjectMeta{Name: r.Name, Labels: labels}, Rules: r.Rights,
		})
	}
	out := bytes.NewBufferString(header)
	if err := writeManifests(out, objects); err != nil {
		return nil, fmt.Errorf("encoding the roles for people: %w", err)
	}
	return out.Bytes(), nil
}
