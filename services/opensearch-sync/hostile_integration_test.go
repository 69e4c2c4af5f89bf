//go:build integration

package opensearchsync_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
)

// Excessive or invalid objects are refused and do not block the others.
func TestInvalidObjectsBlockNoOthers(t *testing.T) {
	const roles = 20
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serveWith(shortenWaits)
	raw := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "raw"}, Data: map[string][]byte{"key": []byte("\xff\xfe" + first)}}
	if _, err := b.core.CoreV1().Secrets(namespace).Create(t.Context(), raw, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = b.core.CoreV1().Secrets(namespace).Delete(context.WithoutCancel(t.Context()), "raw", metav1.DeleteOptions{})
	})
	b.put(kinds.OpenSearchUsers(), "raw", spec(map[string]any{"passwordFrom": map[string]any{"name": "raw", "key": "key"}}))
	b.put(kinds.OpenSearchUsers(), "evil", spec(map[string]any{ // The name repeats the server's message for missing security.
		"passwordFrom": map[string]any{"name": "passwords", "key": "anna"}, "opendistroSecurityRoles": []any{"no handler found"},
	}))
	b.state(kinds.OpenSearchUsers(), "raw", "PENDING", "not UTF-8 text")
	b.state(kinds.OpenSearchUsers(), "evil", "ERROR", "role 'no handler found' not found")
	b.user("ben")
	b.state(kinds.OpenSearchUsers(), "ben", "CREATED", "")
	b.absent("internalusers/raw")
	b.put(kinds.OpenSearchRoles(), "rest", spec(map[string]any{"clusterPermissions": []any{"restapi:admin/roles"}}))

	var names []string
	var all, crowd []any
	for i := range roles {
		names = append(names, fmt.Sprint("r-", i))
		b.role(names[i])
		all = append(all, names[i])
	}
	for i := range 1000 {
		crowd = append(crowd, fmt.Sprint(i, strings.Repeat("x", 200)))
	}
	for _, name := range names {
		b.state(kinds.OpenSearchRoles(), name, "CREATED", "")
	}
	b.state(kinds.OpenSearchRoles(), "rest", "ERROR", "OpenSearch answers 403")
	huge := func(users []any) {
		b.put(kinds.OpenSearchBindings(), "huge", spec(map[string]any{"roles": all, "users": users}))
	}
	huge([]any{"kim"})
	b.state(kinds.OpenSearchBindings(), "huge", "CREATED", "")
	huge(crowd)
	b.state(kinds.OpenSearchBindings(), "huge", "ERROR", "split it")
	b.bind("one", "r-0", "ben")
	b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")
	b.mappedTo("r-0", "ben", "kim") // The binding keeps its entries.
	b.remove(kinds.OpenSearchBindings(), "one")
	b.mappedTo("r-0", "kim")
	huge([]any{"lee"})
	b.state(kinds.OpenSearchBindings(), "huge", "CREATED", "")
	b.mappedTo("r-0", "lee")
	b.remove(kinds.OpenSearchBindings(), "huge")
	b.remove(kinds.OpenSearchRoles(), "rest")
	b.remove(kinds.OpenSearchRoles(), names...)
	b.remove(kinds.OpenSearchUsers(), "raw", "evil", "ben")
}

// overwrite writes a status like a controller that does not support conditions.
func (b *testEnv) overwrite(kind kinds.Kind, name string) {
	b.T.Helper()
	api := b.ResourceClient(kind).Namespace(namespace)
	testenv.Eventually(b.T, soon, func() error {
		o, err := api.Get(b.T.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, _ := o.Object["status"].(map[string]any)
		o.Object["status"] = map[string]any{"state": "CREATED", "managedCluster": status["managedCluster"], "existingRole": false}
		_, err = api.UpdateStatus(b.T.Context(), o, metav1.UpdateOptions{})
		return err
	})
}

func (b *testEnv) get(kind kinds.Kind, name string) *unstructured.Unstructured {
	b.T.Helper()
	o, err := b.ResourceClient(kind).Namespace(namespace).Get(b.T.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.T.Fatal(err)
	}
	return o
}

func (b *testEnv) annotate(kind kinds.Kind, name, annotation, value string) {
	b.T.Helper()
	b.Patch(kind.InNamespace(namespace), name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotation, value))
}

func TestForeignWriterStopsWrites(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serveWith(shortenWaits)
	b.role("watchers")
	b.role("others")
	b.state(kinds.OpenSearchRoles(), "watchers", "CREATED", "")
	b.overwrite(kinds.OpenSearchRoles(), "watchers")
	b.state(kinds.OpenSearchRoles(), "watchers", "ERROR", "another controller")
	before := b.listed("roles/watchers")
	role := func(permission string) map[string]any {
		return spec(map[string]any{"clusterPermissions": []any{permission}})
	}
	b.put(kinds.OpenSearchRoles(), "watchers", role("cluster_composite_ops"))
	b.put(kinds.OpenSearchRoles(), "others", role("cluster_composite_ops"))
	b.state(kinds.OpenSearchRoles(), "others", "CREATED", "")
	b.state(kinds.OpenSearchRoles(), "watchers", "ERROR", "another controller")
	if now := b.listed("roles/watchers"); now != before {
		t.Errorf("the role was\n%s\nand is\n%s", before, now)
	}
	b.annotate(kinds.OpenSearchRoles(), "watchers", "opensearch.org/adopt", "true")
	b.state(kinds.OpenSearchRoles(), "watchers", "CREATED", "")
	if now := b.listed("roles/watchers"); !strings.Contains(now, "cluster_composite_ops") {
		t.Errorf("the role that was taken over is %s", now)
	}

	b.user("anna")
	b.login("anna", first, http.StatusOK)
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "") // A user that was never in step is written again.
	b.write("internalusers/anna", map[string]any{"password": second, "attributes": map[string]any{
		"k8s-uid": string(b.get(kinds.OpenSearchUsers(), "anna").GetUID()), "secret-version": "7",
	}})
	b.annotate(kinds.OpenSearchClusters(), cluster, "look", "again")
	b.state(kinds.OpenSearchUsers(), "anna", "ERROR", "another controller has written the user")
	b.login("anna", second, http.StatusOK)
	b.annotate(kinds.OpenSearchUsers(), "anna", "opensearch.org/adopt", "true")
	b.login("anna", first, http.StatusOK)
	b.remove(kinds.OpenSearchUsers(), "anna")
	b.overwrite(kinds.OpenSearchRoles(), "others")
	b.remove(kinds.OpenSearchRoles(), "others") // An obstacle does not block a removal.
	b.absent("roles/others")
	b.remove(kinds.OpenSearchRoles(), "watchers")
}

// A server with an untrusted certificate receives no request.
func TestUntrustedServerDoesNotReceiveRequests(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	other := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw}))
	user, password := b.search.AdminLogin()
	b.secret("admin", map[string]string{"username": user, "password": password + "\n"})
	b.secret("wrong", map[string]string{"ca.crt": authority})
	b.secret("right", map[string]string{"ca.crt": string(b.search.CA())})
	to := func(fields map[string]any) {
		fields["url"], fields["adminCredentialsSecret"] = b.search.URL(), map[string]any{"name": "admin"}
		b.put(kinds.OpenSearchClusters(), cluster, spec(map[string]any{"connection": fields}))
	}
	authorityOf := func(name string) map[string]any { return map[string]any{"caSecret": map[string]any{"name": name}} }
	b.serve()
	b.user("anna")
	to(authorityOf("wrong"))
	b.state(kinds.OpenSearchUsers(), "anna", "PENDING", "does not answer")
	to(map[string]any{})
	b.state(kinds.OpenSearchUsers(), "anna", "PENDING", "there is no CA")
	if calls := b.search.CallsByOp(); len(calls) > 0 {
		t.Errorf("it was asked %v", calls)
	}
	to(authorityOf("right"))
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	b.login("anna", first, http.StatusOK)
	b.secret("admin", map[string]string{"username": user, "password": second})
	b.bind("one", "watchers", "anna")
	b.state(kinds.OpenSearchBindings(), "one", "PENDING", "answers 401")
	b.secret("admin", map[string]string{"username": user, "password": password})
	b.role("watchers")
	b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")
	b.remove(kinds.OpenSearchBindings(), "one")
	b.remove(kinds.OpenSearchRoles(), "watchers")
	to(map[string]any{"insecureSkipVerify": true})
	b.remove(kinds.OpenSearchUsers(), "anna")
	b.absent("internalusers/anna")
	b.remove(kinds.OpenSearchClusters(), cluster)
}

// If two objects declare the same name, the older one keeps the user and its password.
func TestOlderObjectKeepsName(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serve()
	b.user("anna")
	b.login("anna", first, http.StatusOK)
	b.secret("stolen", map[string]string{"key": second})
	b.put(kinds.OpenSearchUsers(), "thief", spec(map[string]any{"name": "anna", "passwordFrom": map[string]any{"name": "stolen", "key": "key"}}))
	b.state(kinds.OpenSearchUsers(), "thief", "ERROR", "another object also asks for")
	b.RequestResync(topology.OpensearchSync)
	b.AwaitNoCalls()
	b.login("anna", first, http.StatusOK)
	b.login("anna", second, http.StatusUnauthorized)
	b.remove(kinds.OpenSearchUsers(), "thief")
	b.login("anna", first, http.StatusOK)
	b.remove(kinds.OpenSearchUsers(), "anna")
	b.absent("internalusers/anna")
}

// A user keeps its password while the Secret is missing. The next valid Secret replaces it.
func TestPasswordIsKeptWhileSecretIsMissing(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serve()
	b.user("anna")
	b.login("anna", first, http.StatusOK)
	if err := b.core.CoreV1().Secrets(namespace).Delete(t.Context(), "passwords", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.state(kinds.OpenSearchUsers(), "anna", "PENDING", "no such Secret")
	b.secret("passwords", map[string]string{"ben": second})
	b.state(kinds.OpenSearchUsers(), "anna", "PENDING", "key anna does not exist")
	b.secret("passwords", map[string]string{"anna": "\r\n"})
	b.state(kinds.OpenSearchUsers(), "anna", "PENDING", "holds no password")
	b.login("anna", first, http.StatusOK)
	b.secret("passwords", map[string]string{"anna": second})
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	b.login("anna", second, http.StatusOK)
	b.login("anna", first, http.StatusUnauthorized)
	b.remove(kinds.OpenSearchUsers(), "anna")
}

// The status reports a forbidden Secret and the command that grants the right. No event reports a new right, so the
// service reads again.
func TestForbiddenSecretIsReportedWithCommand(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serveWith(func(c *opensearchsync.Config) { c.SecretInterval = 200 * time.Millisecond })
	b.user("anna")
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	roles := b.core.RbacV1().ClusterRoles()
	change := func(verb string) {
		all, err := roles.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, role := range all.Items {
			if strings.HasPrefix(role.Name, "test-") && len(role.Rules) == 1 && slices.Equal(role.Rules[0].Resources, []string{"secrets"}) {
				role.Rules[0].Verbs = []string{verb}
				if _, err := roles.Update(t.Context(), &role, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	change("watch")
	b.put(kinds.OpenSearchUsers(), "ben", spec(map[string]any{"passwordFrom": map[string]any{"name": "passwords", "key": "anna"}}))
	b.state(kinds.OpenSearchUsers(), "ben", "PENDING", "kubectl create rolebinding entail-opensearch-secrets -n default")
	b.login("anna", first, http.StatusOK)
	change("get")
	b.state(kinds.OpenSearchUsers(), "ben", "CREATED", "")
	b.remove(kinds.OpenSearchUsers(), "anna")
	b.remove(kinds.OpenSearchUsers(), "ben")
}

// All names and fields that OpenSearch accepts can be declared.
func TestDeclaredNamesAndFieldsAreWritten(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serve()
	names := []string{"Ünï /%20 x", "..", "UPPER_case", `a"b\c`}
	var users, roles []any
	for i, name := range names {
		b.put(kinds.OpenSearchUsers(), fmt.Sprint("u-", i), spec(map[string]any{
			"name": name, "description": "of " + name, "passwordFrom": map[string]any{"name": "passwords", "key": "anna"},
			"attributes": map[string]any{"team": name}, "backendRoles": []any{name},
		}))
		b.put(kinds.OpenSearchRoles(), fmt.Sprint("r-", i), spec(map[string]any{
			"name": name, "description": "of " + name, "clusterPermissions": []any{"cluster_monitor"},
			"indexPermissions": []any{map[string]any{
				"indexPatterns": []any{"logs-*"}, "dls": `{"match_all":{}}`, "fls": []any{"~secret"}, "maskedFields": []any{"mail"}, "allowedActions": []any{"read"},
			}},
			"tenantPermissions": []any{map[string]any{"tenantPatterns": []any{"t*"}, "allowedActions": []any{"kibana_all_read"}}},
		}))
		users, roles = append(users, name), append(roles, name)
	}
	b.put(kinds.OpenSearchBindings(), "all", spec(map[string]any{"roles": roles, "users": users, "hosts": []any{"10.0.0.*"}, "andBackendRoles": []any{"x", "y"}}))
	b.state(kinds.OpenSearchBindings(), "all", "CREATED", "")
	for i, name := range names {
		b.state(kinds.OpenSearchUsers(), fmt.Sprint("u-", i), "CREATED", "")
		b.state(kinds.OpenSearchRoles(), fmt.Sprint("r-", i), "CREATED", "")
		if !strings.Contains(name, ":") {
			if status, answer := b.search.RequestAs(t, name, first, http.MethodGet, "/_cluster/health", nil); status != http.StatusOK {
				t.Errorf("%s may not what the role of the name says: %d %s", name, status, answer)
			}
		}
	}
	for kind, parts := range map[string][]string{
		"rolesmapping/UPPER_case":  {`"hosts":["10.0.0.*"]`, `"and_backend_roles":["x","y"]`, `"UPPER_case"`},
		"internalusers/UPPER_case": {`"description":"of UPPER_case"`, `"team":"UPPER_case"`, `"backend_roles":["UPPER_case"]`},
		"roles/UPPER_case":         {`"dls":"{\"match_all\":{}}"`, `"fls":["~secret"]`, `"masked_fields":["mail"]`, `"tenant_patterns":["t*"]`, `"description":"of UPPER_case"`},
	} {
		for _, part := range parts {
			if is := b.listed(kind); !strings.Contains(is, part) {
				t.Errorf("%s lacks %s: %s", kind, part, is)
			}
		}
	}
	b.AwaitCaughtUp(topology.OpensearchSync)
	writes := b.search.Writes()
	b.RequestResync(topology.OpensearchSync)
	b.AwaitNoCalls()
	if now := b.search.Writes(); now != writes {
		t.Errorf("what is in step is written %d times", now-writes)
	}
	b.remove(kinds.OpenSearchBindings(), "all")
	for i := range names {
		b.remove(kinds.OpenSearchUsers(), fmt.Sprint("u-", i))
		b.remove(kinds.OpenSearchRoles(), fmt.Sprint("r-", i))
	}
	for _, kind := range []string{"internalusers", "roles", "rolesmapping"} {
		if is := b.listed(kind); slices.ContainsFunc(names, func(name string) bool { return strings.Contains(is, fmt.Sprintf("%q:", name)) }) {
			t.Errorf("something is left: %s", is)
		}
	}
}
