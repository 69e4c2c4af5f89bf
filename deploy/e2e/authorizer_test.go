//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// protected registers kinds with their permissions.
func protected(t *testing.T, m *machine) {
	t.Helper()
	verbs := []any{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	register := func(group, kind string, more ...any) {
		spec := map[string]any{
			"serviceRef": map[string]any{"name": group}, "kind": kind, "singular": strings.ToLower(kind), "plural": strings.ToLower(kind) + "s",
			"permissions": append(append([]any{}, verbs...), more...),
		}
		if kind == "Project" {
			spec["parentResources"] = []any{map[string]any{"apiGroup": group, "kind": "Organization"}}
		}
		declare(t, m.objects(t), "iam.miloapis.com/ProtectedResource", strings.ToLower(kind), spec)
	}
	register(resourceManager, "Organization")
	register(resourceManager, "Project")
	register("core.miloapis.com", "ConfigMap")
	register("core.miloapis.com", "Pod", "exec.create", "status.get")
	register("core.miloapis.com", "ReplicationController", "scale.update")
}

// give creates a role with permissions of a "group/Kind", and binds it to a subject on all objects of the kind.
func (m *machine) give(t *testing.T, name, typ string, subject map[string]any, permissions ...any) {
	t.Helper()
	group, kind, _ := strings.Cut(typ, "/")
	for i := range permissions {
		permissions[i] = fmt.Sprintf("%s/%ss%s", group, strings.ToLower(kind), permissions[i])
	}
	declare(t, m.objects(t), "iam.miloapis.com/Role", name, map[string]any{"launchStage": "Beta", "includedPermissions": permissions})
	declare(t, m.objects(t), "iam.miloapis.com/PolicyBinding", name, map[string]any{
		"roleRef": map[string]any{"name": name}, "subjects": []any{subject},
		"resourceSelector": map[string]any{"resourceKind": map[string]any{"apiGroup": group, "kind": kind}},
	})
}

const allProjects = "GET /apis/resourcemanager.miloapis.com/v1alpha1/projects"

// apiServerAsksEntail gives a user access by a binding, sends requests of all sorts, and deletes the binding.
func apiServerAsksEntail(t *testing.T, m *machine) {
	t.Helper()
	protected(t, m)
	uid := declare(t, m.objects(t), "iam.miloapis.com/User", "alice", map[string]any{"email": "alice@example.com"})
	toAlice := map[string]any{"kind": "User", "name": "alice", "uid": uid}
	alice := m.as(t, rest.ImpersonationConfig{UserName: "alice"})
	eventually(t, soon, "alice is refused", func(ctx context.Context) error {
		code, answer, err := alice.send(ctx, allProjects, "")
		if err == nil && (code != http.StatusForbidden || !strings.Contains(answer, `missing permission \"resourcemanager.miloapis.com/projects.list`) &&
			!strings.Contains(answer, `missing permission \\\"resourcemanager`)) {
			err = fmt.Errorf("%d %s", code, answer)
		}
		return err
	})
	m.give(t, "projects", resourceManager+"/Project", toAlice, ".list", ".get")
	eventually(t, soon, "alice may", alice.may(allProjects, true))
	review := `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"group":"` +
		resourceManager + `","resource":"projects","verb":"%s"}}}`
	for verb, want := range map[string]string{"list": `allowed by PolicyBinding \"default/projects\"`, "delete": `missing permission`} {
		code, answer, err := alice.send(t.Context(), "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", fmt.Sprintf(review, verb))
		if err != nil || code != http.StatusCreated || !strings.Contains(answer, want) {
			t.Errorf("alice asks about herself, and is answered %d %s, %v", code, answer, err)
		}
	}
	t.Run("requests of all sorts", func(t *testing.T) { requests(t, m, toAlice, alice) })
	t.Run("others", func(t *testing.T) { others(t, m) })
	t.Run("people", func(t *testing.T) { people(t, m) })
	t.Run("programs", func(t *testing.T) { programs(t, m) })
	t.Run("attacks", func(t *testing.T) { attacks(t, m) })
	t.Run("nobody answers", func(t *testing.T) { unanswered(t, m, alice) })
	bindings := m.objects(t).Resource(schema.GroupVersionResource{Group: "iam.miloapis.com", Version: "v1alpha1", Resource: "policybindings"})
	if err := bindings.Namespace("default").Delete(t.Context(), "projects", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "alice is refused again", alice.may(allProjects, false))
}

// requests sends one request of each sort that the API server distinguishes.
func requests(t *testing.T, m *machine, toAlice map[string]any, alice *person) {
	t.Helper()
	m.give(t, "configmaps", "core.miloapis.com/ConfigMap", toAlice, ".watch", ".deletecollection", ".create", ".patch")
	m.give(t, "pods", "core.miloapis.com/Pod", toAlice, "/exec.create", "/status.get")
	m.give(t, "scale", "core.miloapis.com/ReplicationController", toAlice, "/scale.update")
	const in = "/api/v1/namespaces/default"
	eventually(t, soon, "the last binding counts", alice.may("PUT "+in+"/replicationcontrollers/x/scale", true))
	for request, want := range map[string]bool{
		"GET " + in + "/configmaps?watch=1&timeoutSeconds=1":              true,
		"GET " + in + "/configmaps":                                       false,
		"GET " + in + "/configmaps/x":                                     false,
		"DELETE " + in + "/configmaps?fieldSelector=metadata.name%3Dnone": true,
		"DELETE " + in + "/configmaps/none":                               false,
		"POST " + in + "/configmaps":                                      true,
		"PATCH " + in + "/configmaps/none":                                true,
		"PUT " + in + "/configmaps/none":                                  false,
		"POST " + in + "/pods/none/exec?command=x":                        true,
		"POST " + in + "/pods/none/attach?command=x":                      false,
		"GET " + in + "/pods/none/status":                                 true,
		"GET " + in + "/pods/none":                                        false,
		"PUT " + in + "/pods/none/status":                                 false,
		"GET " + in + "/replicationcontrollers/x/scale":                   false,
		"GET /api/v1/nodes":                                               false,
		"GET /apis/nobody.example.com/v1/things":                          false,
		"GET /metrics":                                                    false,
		"GET /version":                                                    true,
		"GET /apis/resourcemanager.miloapis.com/v1alpha1/organizations":   false,
	} {
		if err := alice.may(request, want)(t.Context()); err != nil {
			t.Error(err)
		}
	}
	applies(t, m, alice)
	aggregated(t, m, toAlice, alice)
}

// applies checks server-side apply of an absent object, which also requires create.
func applies(t *testing.T, m *machine, alice *person) {
	t.Helper()
	const request = "APPLY /api/v1/namespaces/default/configmaps/applied?fieldManager=test"
	const object = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"of": "%s"}}`
	m.give(t, "patches", "core.miloapis.com/ConfigMap", map[string]any{"kind": "Group", "name": "oidc:patchers"}, ".patch")
	bob := m.as(t, rest.ImpersonationConfig{UserName: "bob", Groups: []string{"oidc:patchers"}})
	eventually(t, soon, "bob may patch", bob.may("PATCH /api/v1/namespaces/default/configmaps/none", true))
	for _, step := range []struct {
		who  *person
		name string
		want int
	}{{bob, "bob", http.StatusForbidden}, {alice, "alice", http.StatusCreated}, {bob, "alice", http.StatusOK}} {
		if code, answer, err := step.who.send(t.Context(), request, fmt.Sprintf(object, step.name)); err != nil || code != step.want {
			t.Errorf("an apply is answered %d, %s, %v, want %d", code, answer, err, step.want)
		}
	}
}

// aggregated checks an API of another server that is away. An allowed user learns that it is away.
func aggregated(t *testing.T, m *machine, toAlice map[string]any, alice *person) {
	t.Helper()
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.away.example.com"},
		"spec": map[string]any{
			"group": "away.example.com", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(10), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "default", "name": "away"},
		},
	}}
	services := m.objects(t).Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	if _, err := services.Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	declare(t, m.objects(t), "iam.miloapis.com/ProtectedResource", "thing", map[string]any{
		"serviceRef": map[string]any{"name": "away.example.com"}, "kind": "Thing", "singular": "thing", "plural": "things", "permissions": []any{"list", "get"},
	})
	m.give(t, "things", "away.example.com/Thing", toAlice, ".list")
	const things = "GET /apis/away.example.com/v1/namespaces/default/things"
	eventually(t, soon, "alice is told that it is away", func(ctx context.Context) error {
		code, answer, err := alice.send(ctx, things, "")
		if err == nil && code != http.StatusServiceUnavailable {
			err = fmt.Errorf("%d %s", code, answer)
		}
		return err
	})
	if err := alice.may(things+"/one", false)(t.Context()); err != nil {
		t.Error(err)
	}
}

// others checks subjects other than a User by name: groups, UIDs, service accounts and nodes.
func others(t *testing.T, m *machine) {
	t.Helper()
	m.give(t, "staff", resourceManager+"/Project", map[string]any{"kind": "Group", "name": "oidc:staff"}, ".list")
	clients, err := kubernetes.NewForConfig(m.config(t))
	if err != nil {
		t.Fatal(err)
	}
	bot, err := clients.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	name := "system:serviceaccount:default:default"
	m.give(t, "bot", resourceManager+"/Project", map[string]any{"kind": "ServiceAccount", "namespace": "default", "name": "default", "uid": string(bot.UID)}, ".list")
	eventually(t, soon, "the account may", m.as(t, rest.ImpersonationConfig{UserName: name, UID: string(bot.UID)}).may(allProjects, true))
	for who, c := range map[string]struct {
		rest.ImpersonationConfig
		want bool
	}{
		"one of a group":                   {rest.ImpersonationConfig{UserName: "bob", Groups: []string{"oidc:staff"}}, true},
		"one of another":                   {rest.ImpersonationConfig{UserName: "bob", Groups: []string{"staff"}}, false},
		"alice by her UID":                 {rest.ImpersonationConfig{UserName: "a@example.com", UID: "alice"}, true},
		"alice by name, with another UID":  {rest.ImpersonationConfig{UserName: "alice", UID: "bob"}, false},
		"the account of another life":      {rest.ImpersonationConfig{UserName: name, UID: "7"}, false},
		"the account by its name":          {rest.ImpersonationConfig{UserName: name}, false},
		"a person with the account's UID":  {rest.ImpersonationConfig{UserName: "bob", UID: string(bot.UID)}, false},
		"who says what an object is of":    {rest.ImpersonationConfig{UserName: "bob", Extra: map[string][]string{"iam.miloapis.com/parent-name": {"x"}}}, false},
		"an account of Entail is no topic": {rest.ImpersonationConfig{UserName: "system:serviceaccount:entail-system:x", Groups: []string{"oidc:staff", "system:serviceaccounts:entail-system"}}, false},
		"nor is a node":                    {rest.ImpersonationConfig{UserName: "system:node:x", Groups: []string{"oidc:staff"}}, false},
	} {
		if err := m.as(t, c.ImpersonationConfig).may(allProjects, c.want)(t.Context()); err != nil {
			t.Errorf("%s: %v", who, err)
		}
	}
}

// unanswered freezes all processes but the API server. Users with RBAC access do not notice, and all others are
// refused.
func unanswered(t *testing.T, m *machine, alice *person) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(m.config(t))
	if err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "carol"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "carol"}},
	}
	if _, err := clients.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	carol := m.as(t, rest.ImpersonationConfig{UserName: "carol"})
	eventually(t, soon, "carol may by RBAC", carol.may(allProjects, true))
	if err := m.process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.process.Process.Signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
		eventually(t, soon, "alice may again", alice.may(allProjects, true))
	}()
	quick, cancel := context.WithTimeout(t.Context(), 2*time.Second) // Less than the API server's timeout for the webhook.
	defer cancel()
	if err := carol.may(allProjects, true)(quick); err != nil {
		t.Errorf("whom RBAC lets in is harmed: %v", err)
	}
	if code, answer, err := alice.send(t.Context(), allProjects, ""); err != nil || code < http.StatusBadRequest || !strings.Contains(answer, "webhook") {
		t.Errorf("where nobody answers, alice is answered %d, %s, %v", code, answer, err)
	}
	metrics, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil || !strings.Contains(string(metrics), `apiserver_authorization_webhook_evaluations_fail_open_total{name="entail"`) {
		t.Errorf("the failure does not show: %v", err)
	}
}
