package testenv

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/rbac"
)

// GrantServiceRight gives a service an additional right, for a resource that only this test has. It returns when the
// right is in force.
func (k *KubeServer) GrantServiceRight(t testing.TB, service string, rule rbacv1.PolicyRule) {
	t.Helper()
	role := k.createClusterRole(t, []rbacv1.PolicyRule{rule})
	k.bindClusterRole(t, "", role, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: rbac.Namespace, Name: service})
	user := rbac.ServiceAccount{Service: service}.UserName()
	if err := devserver.AwaitUserRight(t.Context(), k.AdminConfig(), user, "", rbac.Right{PolicyRule: rule}); err != nil {
		t.Fatal(err)
	}
}
