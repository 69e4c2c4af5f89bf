// Package rbac lists the rights of services and users at the API server in one place. The manifests in deploy/base are
// generated from this list. A service has these rights and no others wherever it runs: in a cluster, in `entail up`,
// or in a test.
package rbac

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/entail-dev/entail/services/internal/event"
)

// Namespace is the namespace of the services in the shipped manifests.
const Namespace = "entail-system"

// ServiceAccount is the service account of one service; it has the name of the service. It needs no right for
// discovery, because the ClusterRole system:discovery gives this right to every authenticated user.
type ServiceAccount struct {
	Service string
	// Everywhere lists rights in all namespaces and on cluster-scoped objects. Own lists rights in [Namespace].
	Everywhere, Own []Right
	// Targets means that the service may read the objects of the kinds in [TargetRolesManifest].
	Targets bool
	// Secrets lists rights on Secrets. They apply in the namespaces in which an operator binds the role
	// [ServiceAccount.SecretsRoleName].
	Secrets []Right
}

// Right is a rule of a role, with its reason.
type Right struct {
	Why string `json:"why"`
	rbacv1.PolicyRule
}

// UserName returns the user name of the account at the API server.
func (a ServiceAccount) UserName() string {
	return "system:serviceaccount:" + Namespace + ":" + a.Service
}

// SecretsRoleName returns the name of the ClusterRole with the account's rights on Secrets.
func (a ServiceAccount) SecretsRoleName() string {
	return "entail-" + strings.TrimSuffix(a.Service, "-sync") + "-secrets"
}

// BindSecretsCommand returns the command that gives the account its rights on Secrets in a namespace.
func (a ServiceAccount) BindSecretsCommand(namespace string) string {
	role := a.SecretsRoleName()
	return fmt.Sprintf("kubectl create rolebinding %s -n %s --clusterrole=%s --serviceaccount=%s:%s", role, namespace, role, Namespace, a.Service)
}

// AccountUserNames lists the user names of all accounts.
func AccountUserNames() []string {
	var users []string
	for _, a := range ServiceAccounts() {
		users = append(users, a.UserName())
	}
	return users
}

// resourceRight returns a right on resources of one API group.
func resourceRight(why string, verbs []string, group string, resources ...string) Right {
	return Right{Why: why, PolicyRule: rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: resources}}
}

// withResourceName restricts r to the object with one name.
func withResourceName(r Right, name string) Right {
	r.ResourceNames = []string{name}
	return r
}

// rightsOnKinds returns rights on kinds of several groups, one right for each group.
func rightsOnKinds(why string, verbs []string, kinds []event.GroupResource) []Right {
	var rights []Right
	at := map[string]int{}
	for _, kind := range kinds {
		i, ok := at[kind.Group]
		if !ok {
			i, at[kind.Group] = len(rights), len(rights)
			rights = append(rights, resourceRight(why, verbs, kind.Group))
		}
		rights[i].Resources = append(rights[i].Resources, kind.Resource)
	}
	return rights
}
