package testenv

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/rbac"
)

const revokedWithin = time.Minute

// Right is one verb on one resource.
type Right struct {
	Verb string
	event.GroupResource
	// namespace and name limit the right as in package rbac. Empty means any.
	namespace, name string
}

func (r Right) String() string { return r.Verb + " " + r.GroupResource.String() }

// DenialText returns a part of the API server's error for a request without the right.
func (r Right) DenialText() string {
	return "cannot " + r.Verb + ` resource "` + r.Resource + `" in API group "` + r.Group + `"`
}

// ServiceRights returns all rights of a service in package rbac, except those on Secrets of other namespaces.
func ServiceRights(service string) []Right {
	account := accountOf(service)
	return append(splitRights("", account.Everywhere), splitRights(rbac.Namespace, account.Own)...)
}

// userNamespaceSecretRights returns the rights of a service on Secrets in namespaces that users choose.
func userNamespaceSecretRights(service string) []Right {
	return splitRights("", accountOf(service).Secrets)
}

func accountOf(service string) rbac.ServiceAccount {
	accounts := rbac.ServiceAccounts()
	return accounts[slices.IndexFunc(accounts, func(a rbac.ServiceAccount) bool { return a.Service == service })]
}

// splitRights splits the rights into single verbs and resources.
func splitRights(namespace string, rights []rbac.Right) (all []Right) {
	for _, r := range rights {
		name := append(slices.Clone(r.ResourceNames), "")[0]
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				all = append(all, Right{verb, event.GroupResource{Group: r.APIGroups[0], Resource: resource}, namespace, name})
			}
		}
	}
	return all
}

// RevokeRight removes one right of a service until the test ends or restore is called. Restore several rights in
// reverse order.
func (k *KubeServer) RevokeRight(t testing.TB, service string, right Right) (restore func()) {
	t.Helper()
	client, err := kubernetes.NewForConfig(k.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	all := ServiceRights(service)
	i := slices.IndexFunc(all, func(r Right) bool { return r.Verb == right.Verb && r.GroupResource == right.GroupResource })
	if i < 0 {
		t.Fatalf("%s has no right to %s", service, right)
	}
	right = all[i]
	role := roleWithRules{client, right.namespace, "entail-" + service}
	before, err := role.editRules(t.Context(), func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule { return rulesWithout(rules, right) })
	if err != nil {
		t.Fatal(err)
	}
	restore = sync.OnceFunc(func() {
		if _, err := role.editRules(context.WithoutCancel(t.Context()), func([]rbacv1.PolicyRule) []rbacv1.PolicyRule { return before }); err != nil {
			t.Error(err)
		}
		if t.Context().Err() == nil { // After the test nothing needs the right.
			awaitRight(t, client, service, right, true)
		}
	})
	t.Cleanup(restore)
	awaitRight(t, client, service, right, false)
	return restore
}

// awaitRight waits until the API server allows, or denies, a request that needs the right.
func awaitRight(t testing.TB, client kubernetes.Interface, service string, right Right, allowed bool) {
	t.Helper()
	resource, subresource, _ := strings.Cut(right.Resource, "/")
	Eventually(t, revokedWithin, func() error {
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: rbac.ServiceAccount{Service: service}.UserName(),
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group: right.Group, Resource: resource, Subresource: subresource, Verb: right.Verb, Namespace: right.namespace, Name: right.name,
				},
			},
		}, metav1.CreateOptions{})
		if err == nil && answer.Status.Allowed != allowed {
			err = fmt.Errorf("%s may %s: got %v, want %v", service, right, answer.Status.Allowed, allowed)
		}
		return err
	})
}

// roleWithRules is a Role, or a ClusterRole if namespace is empty.
type roleWithRules struct {
	client          kubernetes.Interface
	namespace, name string
}

// editRules changes the rules of the role and returns the previous ones.
func (r roleWithRules) editRules(ctx context.Context, edit func([]rbacv1.PolicyRule) []rbacv1.PolicyRule) (before []rbacv1.PolicyRule, err error) {
	if r.namespace != "" {
		roles := r.client.RbacV1().Roles(r.namespace)
		role, err := roles.Get(ctx, r.name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		before, role.Rules = role.Rules, edit(role.Rules)
		_, err = roles.Update(ctx, role, metav1.UpdateOptions{})
		return before, err
	}
	roles := r.client.RbacV1().ClusterRoles()
	role, err := roles.Get(ctx, r.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	before, role.Rules = role.Rules, edit(role.Rules)
	_, err = roles.Update(ctx, role, metav1.UpdateOptions{})
	return before, err
}

// rulesWithout returns the rules without one right.
func rulesWithout(rules []rbacv1.PolicyRule, right Right) (left []rbacv1.PolicyRule) {
	for _, rule := range rules {
		if !slices.Contains(rule.APIGroups, right.Group) || !slices.Contains(rule.Resources, right.Resource) || !slices.Contains(rule.Verbs, right.Verb) {
			left = append(left, rule)
			continue
		}
		others, same := *rule.DeepCopy(), *rule.DeepCopy()
		others.Resources = slices.DeleteFunc(others.Resources, func(r string) bool { return r == right.Resource })
		same.Resources, same.Verbs = []string{right.Resource}, slices.DeleteFunc(same.Verbs, func(v string) bool { return v == right.Verb })
		for _, rest := range []rbacv1.PolicyRule{others, same} {
			if len(rest.Resources) > 0 && len(rest.Verbs) > 0 {
				left = append(left, rest)
			}
		}
	}
	return left
}
