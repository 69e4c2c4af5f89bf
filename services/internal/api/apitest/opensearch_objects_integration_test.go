//go:build integration

package apitest_test

import (
	"errors"
	"maps"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/testenv"
)

const (
	// searchAuthor is a user who may write OpenSearch objects and read the Secret "mine".
	searchAuthor = "search-author"
	// searchConnector is a user who may also connect clusters.
	searchConnector = "search-connector"
)

// searchObject returns an OpenSearch object with a spec.
func searchObject(kind string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": opensearchv1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": "tried", "namespace": namespace}, "spec": with(spec),
	}}
}

// permitSearch grants the rights of searchAuthor and searchConnector, and returns when rights and policies are in
// force.
func permitSearch(t *testing.T) *testenv.KubeServer {
	t.Helper()
	server := testenv.StartKube(t)
	group, write := opensearchv1.GroupVersion.Group, []string{"create", "get", "update", "patch"}
	common := []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{"*"}, Verbs: write},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"mine"}, Verbs: []string{"get"}},
		{APIGroups: []string{group}, Resources: []string{"opensearchroles"}, ResourceNames: []string{"readall"}, Verbs: []string{"bind"}},
	}
	server.GrantUser(t, namespace, searchAuthor, common...)
	server.GrantUser(t, namespace, searchConnector, append(common, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{opensearchv1.Clusters}, Verbs: []string{"connect"}})...)
	for who, kinds := range map[string]map[string]map[string]any{
		searchAuthor: {
			"OpensearchUser":            {"passwordFrom": secret("theirs")},
			"OpensearchUserRoleBinding": {"roles": list("all_access"), "users": list("a")},
			"OpensearchRole":            nil, "OpensearchActionGroup": {"allowedActions": list()},
			"OpenSearchCluster": connection("https://x:9200"),
		},
		searchConnector: {"OpenSearchCluster": connection("https://x:9200", "theirs")},
	} {
		for kind, spec := range kinds {
			testenv.Eventually(t, soon, func() error {
				dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
				if _, err := searchObjects(t, server, who, kind).Create(t.Context(), searchObject(kind, spec), dry); err == nil || lacksRight(err) {
					return errors.Join(errors.New("policy or role not in force"), err)
				}
				return nil
			})
		}
	}
	return server
}

// searchObjects returns a client for an OpenSearch kind as a user. An empty name means the administrator.
func searchObjects(t *testing.T, server *testenv.KubeServer, user, kind string) dynamic.ResourceInterface {
	t.Helper()
	return objectsAs(t, server, user, searchObject(kind, nil))
}

// with returns the spec with a cluster name, unless the spec has one.
func with(spec map[string]any) map[string]any {
	all := map[string]any{"opensearchCluster": map[string]any{"name": "search"}}
	maps.Copy(all, spec)
	return all
}

func secret(name string) map[string]any { return map[string]any{"name": name, "key": "password"} }

func connection(url string, secrets ...string) map[string]any {
	c := map[string]any{"url": url}
	for i, field := range []string{"clientCertificateSecret", "adminCredentialsSecret", "caSecret"}[:len(secrets)] {
		c[field] = map[string]any{"name": secrets[i]}
	}
	return map[string]any{"connection": c}
}

func list(texts ...any) []any { return append([]any{}, texts...) }
