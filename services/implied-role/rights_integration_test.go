//go:build integration

package impliedrole_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/implied-role/internal/validating"
	"github.com/entail-dev/entail/services/internal/admission"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// large is the name of the cluster-scoped objects.
const large = "entail-test-large"

// revokedRightEnv is an implied-role that lacks one right at a time.
type revokedRightEnv struct {
	*testEnv

	suite testenv.RightsSuite
	// administrator is a client that may call every method.
	administrator *http.Client
}

func TestImpliedRoleReportsEachMissingRight(t *testing.T) {
	r := &revokedRightEnv{testEnv: newTestEnv(t)}
	r.StartReflector()
	ofWebhooks := func(right testenv.Right) bool {
		return right.Resource == "validatingwebhookconfigurations" || right.Resource == "secrets"
	}
	r.suite = testenv.RightsSuite{
		Env: r.Env, Service: topology.ImpliedRole, WebhookConfiguration: validating.Name, Log: &testenv.LogBuffer{}, ShouldTest: ofWebhooks,
		Start:     r.startAs(func(c *admission.Config) { c.Service = "default/nowhere" }),
		AwaitIdle: func() { r.AwaitCaughtUp(topology.ImpliedRole) },
		CallWithoutRights: func(ctx context.Context, caller *http.Client, url string) error {
			_, err := inferencev1connect.NewInferenceServiceClient(caller, url).
				ListInferences(ctx, &inferencev1.ListInferencesRequest{Namespace: r.namespace})
			return err
		},
	}
	t.Run("webhooks behind a Service", r.suite.Run)
	// The API server reaches these webhooks by a URL. The service keeps none of their keys in a Secret.
	r.suite.Start = r.startAs(func(c *admission.Config) { c.URL = "https://" + c.Listener.Addr().String() })
	r.suite.ShouldTest = func(right testenv.Right) bool { return !ofWebhooks(right) }
	r.suite.CreateObjects, r.suite.Triggers = r.everyKind, r.uses()
	t.Run("webhooks at a URL", r.suite.Run)
}

// startAs returns a function that starts the service, with webhooks that are found as find sets. They keep their
// address, so the API server finds them as soon as the service has started again.
func (r *revokedRightEnv) startAs(find func(*admission.Config)) func() *testenv.RunningService {
	address := "127.0.0.1:0"
	return func() *testenv.RunningService {
		r.T.Helper()
		listener, err := net.Listen("tcp", address)
		if err != nil {
			r.T.Fatal(err)
		}
		address = listener.Addr().String()
		return r.serveWith(func(c *impliedrole.Config) {
			c.Policy.Prohibited = append(c.Policy.Prohibited, "never-*")
			c.RPC.Auth, c.WithoutGuard, c.Admission.Listener = rpc.AuthKubernetes, false, listener
			find(&c.Admission)
			c.Embed.Log = r.suite.Log.Logger(r.T, slog.LevelInfo)
		})
	}
}

// everyKind makes an object of each followed kind, and bindings that imply others.
func (r *revokedRightEnv) everyKind() {
	r.T.Helper()
	r.roles("a", "b", "lead")
	r.role("secret-admin", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	cluster := metav1.ObjectMeta{Name: large}
	typed := r.typed.RbacV1()
	if _, err := typed.ClusterRoles().Create(r.T.Context(), &rbacv1.ClusterRole{ObjectMeta: cluster}, metav1.CreateOptions{}); err != nil {
		r.T.Fatal(err)
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: cluster.Name}
	bound := &rbacv1.ClusterRoleBinding{ObjectMeta: cluster, RoleRef: ref}
	if _, err := typed.ClusterRoleBindings().Create(r.T.Context(), bound, metav1.CreateOptions{}); err != nil {
		r.T.Fatal(err)
	}
	r.T.Cleanup(func() {
		ctx := context.WithoutCancel(r.T.Context())
		_ = typed.ClusterRoleBindings().Delete(ctx, cluster.Name, metav1.DeleteOptions{})
		_ = typed.ClusterRoles().Delete(ctx, cluster.Name, metav1.DeleteOptions{})
	})
	r.role(mallory,
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"bind"}, ResourceNames: []string{"lead"}},
	)
	r.do("a>b lead>secret-admin B=a{u} " + mallory + "=" + mallory + "{" + mallory + "}")
	r.becomes("B:b{u}")
}

// uses maps each right to the action that needs it.
func (r *revokedRightEnv) uses() map[string]testenv.RightTrigger {
	source := func(c testenv.RightCase) {
		r.roles(c.Name)
		r.do(c.Name + ">b B" + c.Name + "=" + c.Name + "{before}")
	}
	follows := func(c testenv.RightCase) { r.follows(c, "b", "before") }
	sourceFollows := func(c testenv.RightCase) { source(c); follows(c) }
	made := testenv.RightTrigger{RequireRight: source, AwaitDone: follows}
	drift := testenv.RightTrigger{
		RequireRight: func(c testenv.RightCase) {
			r.administrator = r.Kube.CreateAdministrator(r.T, c.Name)
			r.compares(true)
		},
		AwaitDone: func(testenv.RightCase) { r.compares(false) },
	}
	judged := testenv.RightTrigger{
		Prepare: func(testenv.RightCase) {
			for i := range 51 { // The service reads up to 50 roles one by one.
				r.do(fmt.Sprintf("M%[1]d=m%[1]d{%[2]s}", i, mallory))
			}
			r.tries("implies")
		},
		RequireRight: func(testenv.RightCase) { r.tries("this request cannot be checked now") },
		AwaitDone:    func(testenv.RightCase) { r.tries("implies") },
	}
	bind := testenv.RightTrigger{
		RequireRight: r.give,
		LogText:      "attempting to grant RBAC permissions not currently held", // The text of the API server.
		AwaitDone:    func(c testenv.RightCase) { r.follows(c, roleBeyondService(c), "before") },
	}
	return map[string]testenv.RightTrigger{
		"get namespaces": {RequireRight: func(testenv.RightCase) { // The first object that is too large requires the identity of the cluster.
			r.suite.Restart()
			r.PublishOversized(kinds.RoleBindings(), r.namespace, mallory)
		}},
		"create events":       {RequireRight: func(c testenv.RightCase) { r.do(c.Name + ">never-" + c.Name) }},
		"create rolebindings": made, "patch impliedroles/status": made,
		"list impliedroles": drift, "list rolebindings": drift,
		"list roles": judged, "list clusterroles": judged, "list clusterrolebindings": judged,
		"bind roles": bind, "bind clusterroles": bind,
		"patch rolebindings": {
			Prepare:      sourceFollows,
			RequireRight: func(c testenv.RightCase) { r.do("B" + c.Name + "=" + c.Name + "{after}") },
			AwaitDone:    func(c testenv.RightCase) { r.follows(c, "b", "after") },
		},
		"delete rolebindings": {
			Prepare:      sourceFollows,
			RequireRight: func(c testenv.RightCase) { r.do("-B" + c.Name) },
			AwaitDone: func(c testenv.RightCase) {
				testenv.Eventually(r.T, soon, func() error {
					if r.binds(name("B"+c.Name, "b"), "before") {
						return errors.New("got the binding that followed, want none")
					}
					return nil
				})
			},
		},
	}
}

// binds reports whether a binding of this name to this one user exists.
func (r *revokedRightEnv) binds(name, user string) bool {
	return slices.ContainsFunc(r.allBindings(), func(b *rbacv1.RoleBinding) bool {
		return b.Name == name && len(b.Subjects) == 1 && b.Subjects[0].Name == user
	})
}

// follows waits until the rule of this case gives a role to a user.
func (r *revokedRightEnv) follows(c testenv.RightCase, child, user string) {
	r.T.Helper()
	testenv.Eventually(r.T, soon, func() error {
		if !r.binds(name("B"+c.Name, child), user) {
			return fmt.Errorf("got no binding of %s to %s", user, child)
		}
		return nil
	})
}

// roleBeyondService returns the name of a role with permissions that the service itself lacks.
func roleBeyondService(c testenv.RightCase) string {
	if c.Resource == "clusterroles" {
		return "ClusterRole/given-" + c.Name
	}
	return "given-" + c.Name
}

// give makes that role and a rule that implies it.
func (r *revokedRightEnv) give(c testenv.RightCase) {
	r.T.Helper()
	rule := rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}
	if c.Resource == "roles" {
		r.role(roleBeyondService(c), rule)
	} else {
		roles := r.typed.RbacV1().ClusterRoles()
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "given-" + c.Name}, Rules: []rbacv1.PolicyRule{rule}}
		if _, err := roles.Create(r.T.Context(), role, metav1.CreateOptions{}); err != nil {
			r.T.Fatal(err)
		}
		r.T.Cleanup(func() { _ = roles.Delete(context.WithoutCancel(r.T.Context()), role.Name, metav1.DeleteOptions{}) })
	}
	r.roles(c.Name)
	r.do(c.Name + ">" + roleBeyondService(c) + " B" + c.Name + "=" + c.Name + "{before}")
}

// tries waits until the service refuses, with these words, that mallory binds a role. She may bind that role, but not
// the role that it implies.
func (r *revokedRightEnv) tries(words string) {
	r.T.Helper()
	testenv.Eventually(r.T, soon, func() error {
		_, err := r.hands(mallory).typed.RbacV1().RoleBindings(r.namespace).Create(r.T.Context(), binding("probe", "lead", mallory), metav1.CreateOptions{DryRun: dry()})
		if !strings.Contains(fmt.Sprint(err), words) {
			return fmt.Errorf("got %v, want %s", err, words)
		}
		return nil
	})
}

// compares calls CheckDrift as the administrator until the answer is as wanted. The API server may notice new rights
// late.
func (r *revokedRightEnv) compares(unavailable bool) {
	r.T.Helper()
	client := inferencev1connect.NewInferenceServiceClient(r.administrator, r.suite.URL())
	testenv.Eventually(r.T, soon, func() error {
		_, err := client.CheckDrift(r.T.Context(), &inferencev1.CheckDriftRequest{Namespace: r.namespace})
		if unavailable && connect.CodeOf(err) != connect.CodeUnavailable || !unavailable && err != nil {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}
