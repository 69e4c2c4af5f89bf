//go:build integration

package opensearchsync_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/services/internal/kinds"
)

// An object takes over the entities of the public operator only if its annotations ask for it.
func TestAdoptionNeedsAnnotation(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.write("internalusers/anna", map[string]any{"password": second, "attributes": map[string]any{"k8s-uid": "old", "secret-version": "7"}})
	b.write("internalusers/ben", map[string]any{"password": second})
	b.write("roles/watchers", map[string]any{"cluster_permissions": []string{"cluster_all"}})
	b.write("tenants/room", map[string]any{"description": "theirs"})
	b.write("actiongroups/group", map[string]any{"allowed_actions": []string{"write"}})
	b.connect()
	b.serve()
	b.user("anna")
	b.user("ben")
	b.role("watchers")
	b.put(kinds.OpenSearchTenants(), "room", spec(map[string]any{"description": "ours"}))
	b.put(kinds.OpenSearchActionGroups(), "group", spec(map[string]any{"allowedActions": []any{"read"}}))
	b.state(kinds.OpenSearchUsers(), "anna", "ERROR", "belongs to another object")
	b.state(kinds.OpenSearchUsers(), "ben", "ERROR", "from another author")
	all := map[string]kinds.Kind{"watchers": kinds.OpenSearchRoles(), "room": kinds.OpenSearchTenants(), "group": kinds.OpenSearchActionGroups()}
	for name, kind := range all {
		b.state(kind, name, "IGNORED", "exists in OpenSearch already")
	}
	if is := b.listed("roles/watchers") + b.listed("tenants/room") + b.listed("actiongroups/group"); !strings.Contains(is, "theirs") || !strings.Contains(is, "cluster_all") || !strings.Contains(is, "write") {
		t.Errorf("what others made is %s", is)
	}

	b.annotate(kinds.OpenSearchUsers(), "anna", "opensearch.org/source-uid", "old")
	b.annotate(kinds.OpenSearchUsers(), "ben", "opensearch.org/adopt", "true")
	for name, kind := range all {
		b.annotate(kind, name, "opensearch.org/adopt", "true")
		b.state(kind, name, "CREATED", "")
	}
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	b.state(kinds.OpenSearchUsers(), "ben", "CREATED", "")
	b.login("anna", first, http.StatusOK)
	b.login("ben", first, http.StatusOK)
	b.attribute("anna", "k8s-uid", string(b.get(kinds.OpenSearchUsers(), "anna").GetUID()))
	for name, kind := range all {
		b.remove(kind, name)
	}
	b.remove(kinds.OpenSearchUsers(), "anna")
	b.remove(kinds.OpenSearchUsers(), "ben")
	for _, path := range []string{"internalusers/anna", "internalusers/ben", "roles/watchers", "tenants/room", "actiongroups/group"} {
		b.absent(path)
	}
}

// A cluster that the public operator runs is reached by the address and Secrets in its spec, or by default names, once
// it runs.
func TestOperatorClusterConnectionFollowsSpec(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.serve()
	b.user("anna")
	address, err := url.Parse(b.search.URL())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		t.Fatal(err)
	}
	user, password := b.search.AdminLogin()
	certificate, key := b.search.AdminCertificate()
	b.secret(cluster+"-ca", map[string]string{"ca.crt": string(b.search.CA())})
	b.secret(cluster+"-admin-password", map[string]string{"username": user, "password": password})
	b.secret("operator", map[string]string{"tls.crt": string(certificate), "tls.key": string(key)})
	general := map[string]any{"operatorClusterURL": address.Hostname(), "httpPort": port, "serviceName": cluster, "version": "2.19.4"}
	b.put(kinds.OpenSearchClusters(), cluster, spec(map[string]any{"general": general}))
	b.state(kinds.OpenSearchUsers(), "anna", "PENDING", "not running yet")
	b.Patch(kinds.OpenSearchClusters().InNamespace(namespace), cluster, `{"status":{"phase":"RUNNING"}}`, "status")
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	b.login("anna", first, http.StatusOK)
	b.secret(cluster+"-admin-password", map[string]string{"username": user, "password": second})
	b.put(kinds.OpenSearchClusters(), cluster, spec(map[string]any{
		"general": general, "security": map[string]any{"config": map[string]any{"operatorClientCert": map[string]any{"name": "operator"}}},
	}))
	b.role("watchers")
	b.state(kinds.OpenSearchRoles(), "watchers", "CREATED", "")
	b.remove(kinds.OpenSearchRoles(), "watchers")
	b.remove(kinds.OpenSearchUsers(), "anna")
	b.remove(kinds.OpenSearchClusters(), cluster)
}

// A namespace can delete its objects in any order. All their entities are removed.
func TestNamespaceDeletionRemovesEntities(t *testing.T) {
	const team = "team"
	b := newTestEnv(t)
	b.Reflector()
	b.serve()
	b.CreateNamespace(team)
	for _, name := range []string{"connection", "passwords"} {
		is, err := b.core.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		is.ObjectMeta = metav1.ObjectMeta{Name: name}
		if _, err := b.core.CoreV1().Secrets(team).Create(t.Context(), is, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	in := map[string]any{"name": cluster}
	for _, o := range []struct {
		kind kinds.Kind
		name string
		spec map[string]any
	}{
		{kinds.OpenSearchClusters(), cluster, nil},
		{kinds.OpenSearchUsers(), "anna", map[string]any{"opensearchCluster": in, "passwordFrom": map[string]any{"name": "passwords", "key": "anna"}}},
		{kinds.OpenSearchRoles(), "watchers", map[string]any{"opensearchCluster": in, "clusterPermissions": []any{"cluster_monitor"}}},
		{kinds.OpenSearchBindings(), "one", map[string]any{"opensearchCluster": in, "roles": []any{"watchers"}, "users": []any{"anna"}}},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": o.kind.GroupVersionResource().GroupVersion().String(), "kind": o.kind.Kind, "spec": o.spec}}
		u.SetName(o.name)
		u.SetAnnotations(map[string]string{"entail.dev/connection-secret": "connection"})
		if _, err := b.ResourceClient(o.kind).Namespace(team).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	b.login("anna", first, http.StatusOK)
	b.mappedTo("watchers", "anna")
	b.DeleteNamespace(team)
	b.AwaitNamespaceGone(team)
	b.absent("internalusers/anna")
	b.absent("roles/watchers")
	b.absent("rolesmapping/watchers")
}
