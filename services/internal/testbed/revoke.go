package testbed

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rbac"
)

const revokedWithin = time.Minute

// Revoke takes a right on a kind from a service, until the test ends or the function is called.
func (k *KubeServer) Revoke(t testing.TB, service, verb string, kind kinds.Kind) (restore func()) {
	t.Helper()
	client, err := kubernetes.NewForConfig(k.Admin())
	if err != nil {
		t.Fatal(err)
	}
	roles := client.RbacV1().ClusterRoles()
	change := func(ctx context.Context, edit func(*rbacv1.ClusterRole)) {
		role, err := roles.Get(ctx, "entail-"+service, metav1.GetOptions{})
		if err == nil {
			edit(role)
			_, err = roles.Update(ctx, role, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Error(err)
		}
	}
	var before []rbacv1.PolicyRule
	change(t.Context(), func(role *rbacv1.ClusterRole) {
		before = role.DeepCopy().Rules
		role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.APIGroups, kind.Group) && slices.Contains(rule.Resources, kind.Resource) && slices.Contains(rule.Verbs, verb)
		})
	})
	restore = sync.OnceFunc(func() {
		change(context.WithoutCancel(t.Context()), func(role *rbacv1.ClusterRole) { role.Rules = before })
	})
	t.Cleanup(restore)
	Eventually(t, revokedWithin, func() error {
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               rbac.Account{Service: service}.User(),
				ResourceAttributes: &authorizationv1.ResourceAttributes{Group: kind.Group, Resource: kind.Resource, Verb: verb},
			},
		}, metav1.CreateOptions{})
		if err == nil && answer.Status.Allowed {
			err = errors.New("the right is still there")
		}
		return err
	})
	return restore
}
