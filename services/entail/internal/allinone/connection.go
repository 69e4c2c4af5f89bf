package allinone

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1apply "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/devserver/opensearch"
	"github.com/entail-dev/entail/services/internal/rbac"
)

// The Secret from which an OpenSearchCluster takes the connection to the local OpenSearch: annotation
// entail.dev/connection-secret.
const (
	connectionNamespace = metav1.NamespaceDefault
	connectionName      = "local-opensearch"
)

// applyConnectionSecret writes the URL and the administrator's certificate of the server to a Secret.
func applyConnectionSecret(ctx context.Context, cfg *rest.Config, server *opensearch.Server) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("writing the connection Secret of OpenSearch: %w", err)
	}
	admin := server.AdminCertificate()
	secret := corev1apply.Secret(connectionName, connectionNamespace).
		WithLabels(map[string]string{"app.kubernetes.io/managed-by": "entail-up"}).
		WithData(map[string][]byte{
			"url": []byte(server.URL()), "ca.crt": server.CACertificate(), "tls.crt": admin.Certificate, "tls.key": admin.Key,
		})
	options := metav1.ApplyOptions{FieldManager: "entail-up", Force: true}
	if _, err := client.CoreV1().Secrets(connectionNamespace).Apply(ctx, secret, options); err != nil {
		return fmt.Errorf("writing the connection Secret of OpenSearch: %w", err)
	}
	return nil
}

// watchedSecretNamespaces returns the namespaces whose Secrets are watched: the configured ones, otherwise the namespace of
// the connection Secret.
func (c *Config) watchedSecretNamespaces() []string {
	if set := c.Services.Watcher.SecretNamespaces; len(set) > 0 || !c.OpenSearch {
		return set
	}
	return []string{connectionNamespace}
}

// bindSecretRoles binds the roles for Secrets to the services in the namespace of the connection Secret. In other
// clusters, an administrator creates these bindings.
func bindSecretRoles(ctx context.Context, cfg *rest.Config) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("giving services the right to read Secrets: %w", err)
	}
	for _, account := range rbac.ServiceAccounts() {
		if len(account.Secrets) == 0 {
			continue
		}
		binding := rbacv1apply.RoleBinding(account.SecretsRoleName(), connectionNamespace).
			WithRoleRef(rbacv1apply.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(account.SecretsRoleName())).
			WithSubjects(rbacv1apply.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(rbac.Namespace).WithName(account.Service))
		options := metav1.ApplyOptions{FieldManager: "entail-up", Force: true}
		if _, err := client.RbacV1().RoleBindings(connectionNamespace).Apply(ctx, binding, options); err != nil {
			return fmt.Errorf("giving %s the right to read Secrets in %s: %w", account.Service, connectionNamespace, err)
		}
		if err := devserver.AwaitUserRight(ctx, cfg, account.UserName(), connectionNamespace, account.Secrets[0]); err != nil {
			return err
		}
	}
	return nil
}
