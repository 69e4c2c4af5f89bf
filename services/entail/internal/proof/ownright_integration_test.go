//go:build integration

package proof

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/entail/internal/command"
	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// startServiceWithWebhooks starts an implied-role whose webhooks check the authors of rules and bindings.
func startServiceWithWebhooks(t *testing.T, b *testenv.Env) *testenv.RunningService {
	t.Helper()
	webhooks := testenv.ListenLoopback(t)
	b.Kube.DeleteWebhooksAfter(t, "entail-implied-role")
	cfg := impliedrole.Defaults()
	listener := b.ConfigureService(topology.ImpliedRole, &cfg.Config.Config)
	cfg.Admission.Listener, cfg.Admission.URL = webhooks, "https://"+webhooks.Addr().String()
	return b.Serve(listener, func(ctx context.Context) error { return impliedrole.Run(ctx, cfg) })
}

// grantPerson allows a user to write rules and bindings, and to bind one role, in a namespace.
func grantPerson(t *testing.T, b *testenv.Env, namespace, name, role string) {
	t.Helper()
	b.Kube.GrantUser(t, namespace, name,
		rbacv1.PolicyRule{APIGroups: []string{kinds.ImpliedRoles().Group}, Resources: []string{kinds.ImpliedRoles().Resource}, Verbs: []string{"create", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"create", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, ResourceNames: []string{role}, Verbs: []string{"bind"}})
}

// TestPreviewReportsRightsOfCaller runs previews as two users. The first one may bind writer, which implies reader,
// but not reader. The second one is an administrator.
func TestPreviewReportsRightsOfCaller(t *testing.T) {
	b := testenv.NewEnv(t)
	ns := createTeamNamespace(t, b.Kube)
	grantPerson(t, b, ns, "mallory", "writer")
	client := b.Typed
	if _, err := client.RbacV1().Roles(ns).Update(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
	}}, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "eve-writes"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "writer"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "eve"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.StartReflector()
	server := startServiceWithWebhooks(t, b).URL
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte("kind: ImpliedRoles\nmetadata: {name: more}\nspec: {inference_rule: {parent_role: free, child_role: writer}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	binding := []string{"binding", "new", "--role", "writer", "--subject", "mallory"}
	for what, c := range map[string]struct {
		who  string
		args []string
		code int
		want string
	}{
		"a binding of what implies more":    {"mallory", binding, 1, "RoleBinding new: admission webhook \"rolebindings.role.k8s.com\" denied the request: Role writer implies Role reader, which mallory may not bind"},
		"a binding by an administrator":     {"", binding, 0, "You may do this."},
		"one subject more":                  {"mallory", []string{"binding", "alice-writes", "--role", "writer", "--subject", "mallory"}, 1, "implies Role reader"},
		"what nobody gains by":              {"mallory", []string{"binding", "eve-writes", "--role", "writer", "--subject", "eve"}, 0, "You may do this."},
		"a deletion without the right":      {"mallory", []string{"binding", "alice-writes", "--remove"}, 1, "cannot delete resource"},
		"a rule that gives what is implied": {"mallory", []string{"rules", "-f", rules}, 1, "gives Role reader with Role writer to every holder of Role free"},
		"a rule of an administrator":        {"", []string{"rules", "-f", rules}, 0, "You may do this."},
		"a rule that goes":                  {"", []string{"rules", "--remove", "writer-reader"}, 0, "You may do this."},
	} {
		config := kubeconfigOf(t, b.Kube, ns, c.who)
		args := append(append([]string{"preview"}, c.args...), "-n", ns, "--server", server)
		testenv.Eventually(t, time.Minute, func() error { // The API server begins to call the new service.
			var out, err strings.Builder
			code := command.Run(t.Context(), args, command.IOStreams{
				In: strings.NewReader(""), Out: &out, Err: &err,
				Getenv: func(name string) string { return map[string]string{"KUBECONFIG": config}[name] },
			})
			if code != c.code || !strings.Contains(err.String(), c.want) {
				return fmt.Errorf("%s: exit code %d, %s%s", what, code, out.String(), err.String())
			}
			return nil
		})
	}
	list, err := client.RbacV1().RoleBindings(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tried := range list.Items {
		if tried.Name == "new" || tried.Name == "alice-writes" && len(tried.Subjects) > 0 {
			t.Errorf("%s was kept: %v", tried.Name, tried.Subjects)
		}
	}
}
