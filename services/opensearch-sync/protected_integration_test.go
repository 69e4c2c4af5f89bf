//go:build integration

package opensearchsync_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// unprivilegedUser writes objects of OpenSearch and reads the Secret "mine". She lacks the verbs bind, adopt and
// connect.
type unprivilegedUser struct {
	*testEnv

	objects dynamic.Interface
}

func (b *testEnv) alice() unprivilegedUser {
	b.T.Helper()
	b.secret("mine", map[string]string{"p": second, "q": first})
	b.Kube.GrantUser(b.T, namespace, "alice",
		rbacv1.PolicyRule{APIGroups: []string{kinds.OpenSearchUsers().Group}, Verbs: []string{"*"}, Resources: []string{
			kinds.OpenSearchUsers().Resource, kinds.OpenSearchBindings().Resource,
			kinds.OpenSearchTenants().Resource, kinds.OpenSearchActionGroups().Resource,
		}},
		rbacv1.PolicyRule{APIGroups: []string{kinds.OpenSearchRoles().Group}, Resources: []string{kinds.OpenSearchRoles().Resource}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"mine"}, Verbs: []string{"get"}})
	a := unprivilegedUser{b, b.Kube.DynamicClientAs(b.T, "alice")}
	testenv.Eventually(b.T, soon, func() error { // The API server applies new rights with a delay.
		return a.create(kinds.OpenSearchUsers(), "dry", specWithOwnSecret(), metav1.DryRunAll)
	})
	return a
}

// specWithOwnSecret returns the spec of a user with a password of alice's and backend roles.
func specWithOwnSecret(backendRoles ...any) map[string]any {
	return map[string]any{"passwordFrom": map[string]any{"name": "mine", "key": "p"}, "backendRoles": append([]any{}, backendRoles...)}
}

func (a unprivilegedUser) create(kind kinds.Kind, name string, fields map[string]any, dry ...string) error {
	fields = maps.Clone(fields)
	fields["opensearchCluster"] = map[string]any{"name": cluster}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": fields, "metadata": map[string]any{"name": name}}}
	o.SetAPIVersion(kind.GroupVersionResource().GroupVersion().String())
	o.SetKind(kind.Kind)
	_, err := a.objects.Resource(kind.GroupVersionResource()).Namespace(namespace).Create(a.T.Context(), o, metav1.CreateOptions{DryRun: dry})
	return err
}

func (a unprivilegedUser) patch(kind kinds.Kind, name, patch string) error {
	_, err := a.objects.Resource(kind.GroupVersionResource()).Namespace(namespace).Patch(
		a.T.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (a unprivilegedUser) refused(err error, text string) {
	a.T.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		a.T.Errorf("got %v, want a refusal with %q", err, text)
	}
}

func (a unprivilegedUser) accepted(err error) {
	a.T.Helper()
	if err != nil {
		a.T.Fatal(err)
	}
}

func TestChangedPasswordOfProtectedUserRequiresBind(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serve()
	a := b.alice()
	b.put(kinds.OpenSearchUsers(), "ops", spec(map[string]any{
		"passwordFrom": map[string]any{"name": "passwords", "key": "anna"}, "backendRoles": []any{"admin"},
	}))
	b.state(kinds.OpenSearchUsers(), "ops", "CREATED", "") // Admission required the verb bind, so no annotation is needed.
	a.refused(a.patch(kinds.OpenSearchUsers(), "ops", `{"spec":{"passwordFrom":{"name":"mine","key":"p"}}}`), "it gives all_access")
	a.refused(a.patch(kinds.OpenSearchUsers(), "ops", `{"spec":{"backendRoles":["admin","dev"]}}`), "it gives all_access")
	a.accepted(a.patch(kinds.OpenSearchUsers(), "ops", `{"spec":{"description":"operations"}}`))
	a.accepted(a.patch(kinds.OpenSearchUsers(), "ops", `{"spec":{"backendRoles":[]}}`))
	a.accepted(a.patch(kinds.OpenSearchUsers(), "ops", `{"spec":{"passwordFrom":{"name":"mine","key":"p"}}}`))
	b.login("ops", second, http.StatusOK) // The user has no role now.
}

// approval returns the annotation value that the status of an object requires.
func (b *testEnv) approval(kind kinds.Kind, name string) string {
	b.T.Helper()
	b.state(kind, name, "ERROR", "opensearch.org/bind=")
	reason, _, _ := unstructured.NestedString(b.get(kind, name).Object, "status", "reason")
	found := regexp.MustCompile(`opensearch\.org/bind=([0-9a-f]+)`).FindStringSubmatch(reason)
	if found == nil {
		b.T.Fatalf("got the reason %q, want a value", reason)
	}
	return found[1]
}

func TestUserOfProtectedMappingRequiresBind(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serve()
	a := b.alice()
	b.put(kinds.OpenSearchBindings(), "top", spec(map[string]any{"roles": []any{"all_access"}, "users": []any{"chief", "boss-*"}}))
	b.state(kinds.OpenSearchBindings(), "top", "CREATED", "")
	b.write("rolesmapping/readall", map[string]any{"backend_roles": []string{"platform-admins"}, "and_backend_roles": []string{"x", "y"}})
	users := kinds.OpenSearchUsers()
	for name, fields := range map[string]map[string]any{
		"chief": specWithOwnSecret(), "boss-1": specWithOwnSecret(), "mallory": specWithOwnSecret("platform-admins"), "pair": specWithOwnSecret("x", "y"), "free": specWithOwnSecret("x", "dev"),
	} {
		a.accepted(a.create(users, name, fields))
	}
	b.state(users, "free", "CREATED", "")
	values := map[string]string{}
	for _, name := range []string{"chief", "boss-1", "mallory", "pair"} {
		values[name] = b.approval(users, name)
		b.absent("internalusers/" + name)
	}
	a.accepted(a.patch(users, "free", `{"spec":{"backendRoles":["platform-admins"]}}`))
	b.approval(users, "free")
	if is := b.listed("internalusers/free"); strings.Contains(is, "platform-admins") {
		t.Errorf("got %s, want no new backend role", is)
	}
	annotation := func(value string) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{"opensearch.org/bind":%q}}}`, value)
	}
	a.refused(a.patch(users, "mallory", annotation(values["mallory"])), "needs the verb bind on all")
	b.annotate(users, "chief", "opensearch.org/bind", values["mallory"]) // The approval of another object does not count.
	b.annotate(users, "mallory", "opensearch.org/bind", values["mallory"])
	b.state(users, "mallory", "CREATED", "")
	b.login("mallory", second, http.StatusOK)
	b.approval(users, "chief")
	b.absent("internalusers/chief")

	a.accepted(a.patch(users, "mallory", `{"spec":{"passwordFrom":{"key":"q"}}}`))
	b.approval(users, "mallory")
	b.login("mallory", second, http.StatusOK)
	b.login("mallory", first, http.StatusUnauthorized)
	b.remove(users, "mallory")
	b.absent("internalusers/mallory")
	b.remove(kinds.OpenSearchBindings(), "top")
	b.state(users, "chief", "CREATED", "") // The name is free now.
	for _, name := range []string{"chief", "boss-1", "pair", "free"} {
		b.remove(users, name)
	}
}

// company is a role that OpenSearch reserves and that no list of admission has.
func (b *testEnv) company() {
	b.T.Helper()
	role := map[string]any{"op": "add", "path": "/company", "value": map[string]any{"reserved": true, "cluster_permissions": []string{"*"}}}
	if status, answer := b.search.RequestAsAdmin(b.T, http.MethodPatch, "/_plugins/_security/api/roles", []any{role}); status != http.StatusOK {
		b.T.Fatalf("reserving a role: %d %s", status, answer)
	}
}

// With roles_mapping_resolution BOTH, a backend role gives the role of its name. No API shows this setting.
func TestRoleThatOnlyOpenSearchProtectsRequiresBind(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.company()
	b.serve()
	a := b.alice()
	users, bindings := kinds.OpenSearchUsers(), kinds.OpenSearchBindings()
	direct := specWithOwnSecret()
	direct["opendistroSecurityRoles"] = []any{"company"}
	for name, fields := range map[string]map[string]any{"direct": direct, "named": specWithOwnSecret("company"), "both": specWithOwnSecret("all_access")} {
		a.accepted(a.create(users, name, fields))
		b.approval(users, name)
		b.absent("internalusers/" + name)
	}
	a.accepted(a.create(users, "free", specWithOwnSecret()))
	a.accepted(a.create(bindings, "gift", map[string]any{"roles": []any{"company"}, "users": []any{"free"}}))
	value := b.approval(bindings, "gift")
	b.absent("rolesmapping/company")
	a.refused(a.patch(bindings, "gift", fmt.Sprintf(`{"metadata":{"annotations":{"opensearch.org/bind":%q}}}`, value)), "needs the verb bind on all")
	b.annotate(bindings, "gift", "opensearch.org/bind", value)
	b.state(bindings, "gift", "CREATED", "")
	a.accepted(a.patch(bindings, "gift", `{"spec":{"users":["free","mallory"]}}`))
	b.approval(bindings, "gift")
	b.mappedTo("company", "free")
	a.accepted(a.patch(bindings, "gift", `{"spec":{"users":["mallory"]}}`))
	b.mappedTo("company") // The revocation takes no approval.
	b.approval(bindings, "gift")
	b.remove(bindings, "gift")
	b.remove(users, "direct", "named", "both", "free")
}

func TestChangeThatOpenSearchDoesNotListIsReported(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serve()
	b.role("kept")
	b.state(kinds.OpenSearchRoles(), "kept", "CREATED", "")
	b.search.FailBefore(func(_ context.Context, op string) error {
		if strings.HasPrefix(op, http.MethodPatch) {
			return testenv.InjectedResponseError(http.StatusOK, `{"status":"OK"}`)
		}
		return nil
	})
	b.role("lost")
	b.state(kinds.OpenSearchRoles(), "lost", "ERROR", "lists something else")
	b.Delete(kinds.OpenSearchRoles().InNamespace(namespace), "kept")
	b.state(kinds.OpenSearchRoles(), "kept", "ERROR", "lists something else")
	b.search.FailBefore(nil)
	b.state(kinds.OpenSearchRoles(), "lost", "CREATED", "")
	b.AwaitGone(kinds.OpenSearchRoles().InNamespace(namespace), "kept")
	b.absent("roles/kept")
	b.remove(kinds.OpenSearchRoles(), "lost")
}
