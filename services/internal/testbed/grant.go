package testbed

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/rbac"
)

// Grant lets a service do more than it is shipped with, with resources that only this test has.
func (k *KubeServer) Grant(t testing.TB, service string, rule rbacv1.PolicyRule) {
	t.Helper()
	client, err := kubernetes.NewForConfig(k.Admin())
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	role, err := client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Rules: []rbacv1.PolicyRule{rule},
	}, metav1.CreateOptions{})
	must(err)
	_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: rbac.Namespace, Name: service}},
	}, metav1.CreateOptions{})
	must(err)
	t.Cleanup(func() {
		must(client.RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(t.Context()), role.Name, metav1.DeleteOptions{}))
	})
	must(devserver.AwaitRight(t.Context(), k.Admin(), rbac.Account{Service: service}.User(), "", rbac.Right{PolicyRule: rule}))
}
