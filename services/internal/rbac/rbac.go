// Package rbac is the one table of what each service may do at the API server, and that of what
// people may. The manifests in deploy/base are generated from them, and wherever a service runs, in
// a cluster, in `entail up` or in a test, it has these rights and no others.
package rbac

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/entail-dev/entail/services/internal/event"
)

//go:generate go run ../cmd/generate-rbac ../../../deploy

// Namespace is where the shipped manifests put every service.
const Namespace = "entail-system"

// Account is the service account of one service, and has its name. Discovery is not among
// its rights: whoever is authenticated has it by the ClusterRole system:discovery.
type Account struct {
	Service string
	// Everywhere are rights in every namespace and on what has none, Own those in [Namespace].
	Everywhere, Own []Right
	// Targets says that it reads the objects of registered kinds: what [TargetsManifest] makes may be read, and nothing else.
	Targets bool
	// Secrets are rights on Secrets, in those namespaces alone where people bind [Account.SecretsRole].
	Secrets []Right
}

// Right is what may be done, and why.
type Right struct {
	Why string `json:"why"`
	rbacv1.PolicyRule
}

// User is how the API server calls the account.
func (a Account) User() string { return "system:serviceaccount:" + Namespace + ":" + a.Service }

// SecretsRole is the ClusterRole of what the account may do with Secrets where it is bound.
func (a Account) SecretsRole() string {
	return "entail-" + strings.TrimSuffix(a.Service, "-sync") + "-secrets"
}

// BindSecrets is the command that gives the account its rights on the Secrets of a namespace.
func (a Account) BindSecrets(namespace string) string {
	role := a.SecretsRole()
	return fmt.Sprintf("kubectl create rolebinding %s -n %s --clusterrole=%s --serviceaccount=%s:%s", role, namespace, role, Namespace, a.Service)
}

// Users are those of all accounts.
func Users() []string {
	var users []string
	for _, a := range Accounts() {
		users = append(users, a.User())
	}
	return users
}

// may is a right on resources of one API group.
func may(why string, verbs []string, group string, resources ...string) Right {
	return Right{Why: why, PolicyRule: rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: resources}}
}

// named is r on the one object of that name.
func named(r Right, name string) Right {
	r.ResourceNames = []string{name}
	return r
}

// each is a right on kinds, which may be of several groups.
func each(why string, verbs []string, kinds []event.GroupResource) []Right {
	var rights []Right
	at := map[string]int{}
	for _, kind := range kinds {
		i, ok := at[kind.Group]
		if !ok {
			i, at[kind.Group] = len(rights), len(rights)
			rights = append(rights, may(why, verbs, kind.Group))
		}
		rights[i].Resources = append(rights[i].Resources, kind.Resource)
	}
	return rights
}
