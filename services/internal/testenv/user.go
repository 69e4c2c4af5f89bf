package testenv

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ConfigAs returns a client configuration that impersonates a user. An empty name means the administrator.
func (k *KubeServer) ConfigAs(user string) *rest.Config {
	cfg := k.AdminConfig()
	if user != "" {
		cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
	}
	return cfg
}

// DynamicClientAs returns a client that impersonates a user. An empty name means the administrator.
func (k *KubeServer) DynamicClientAs(t testing.TB, user string) dynamic.Interface {
	t.Helper()
	objects, err := dynamic.NewForConfig(k.ConfigAs(user))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// TypedClient returns a typed client of an administrator. Its calls bypass [Traffic].
func (k *KubeServer) TypedClient(t testing.TB) kubernetes.Interface {
	t.Helper()
	return k.TypedClientAs(t, "")
}

// TypedClientAs returns a typed client that impersonates a user. An empty name means the administrator.
func (k *KubeServer) TypedClientAs(t testing.TB, user string) kubernetes.Interface {
	t.Helper()
	typed, err := kubernetes.NewForConfig(k.ConfigAs(user))
	if err != nil {
		t.Fatal(err)
	}
	return typed
}

// GrantUser gives a user rights until the test ends. An empty namespace means all namespaces. It returns the name of
// the ClusterRole with the rights, which do not take effect at once.
func (k *KubeServer) GrantUser(t testing.TB, namespace, user string, rules ...rbacv1.PolicyRule) (role string) {
	t.Helper()
	role = k.createClusterRole(t, rules)
	k.BindUser(t, namespace, user, role)
	return role
}

// BindUser binds a ClusterRole to a user until the test ends. An empty namespace means all namespaces.
func (k *KubeServer) BindUser(t testing.TB, namespace, user, clusterRole string) {
	t.Helper()
	k.bindClusterRole(t, namespace, clusterRole, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user})
}

func (k *KubeServer) createClusterRole(t testing.TB, rules []rbacv1.PolicyRule) (name string) {
	t.Helper()
	api := k.TypedClient(t).RbacV1().ClusterRoles()
	role, err := api.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), role.Name, metav1.DeleteOptions{}) })
	return role.Name
}

func (k *KubeServer) bindClusterRole(t testing.TB, namespace, role string, subject rbacv1.Subject) {
	t.Helper()
	api := k.TypedClient(t).RbacV1()
	meta := metav1.ObjectMeta{GenerateName: "test-"}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	ctx, ended := t.Context(), context.WithoutCancel(t.Context())
	var err error
	if namespace == "" {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{subject}}
		binding, err = api.ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
		t.Cleanup(func() { _ = api.ClusterRoleBindings().Delete(ended, binding.GetName(), metav1.DeleteOptions{}) })
	} else {
		binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{subject}}
		binding, err = api.RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{})
		t.Cleanup(func() { _ = api.RoleBindings(namespace).Delete(ended, binding.GetName(), metav1.DeleteOptions{}) })
	}
	if err != nil {
		t.Fatal(err)
	}
}
