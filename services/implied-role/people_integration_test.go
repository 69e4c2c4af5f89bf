//go:build integration

package impliedrole_test

import (
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/implied-role/internal/validating"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// people binds vera, ed and adam to the roles view, edit and admin of Kubernetes, which include the shipped roles.
func (b *testEnv) people() {
	b.T.Helper()
	b.do("vera=ClusterRole/view{vera} ed=ClusterRole/edit{ed} adam=ClusterRole/admin{adam}")
	testenv.Eventually(b.T, soon, func() error {
		if !b.can("adam", "patch", kinds.ImpliedRoles(), "") || !b.can("ed", "patch", kinds.PolicyDocuments(), "") || !b.can("vera", "list", kinds.ImpliedRoles(), "") {
			return fmt.Errorf("the roles of Kubernetes do not have ours yet")
		}
		return nil
	})
}

// can reports whether the API server allows a user an action.
func (b *testEnv) can(user, verb string, kind kinds.Kind, subresource string) bool {
	b.T.Helper()
	about := &authorizationv1.ResourceAttributes{
		Verb: verb, Group: kind.Group, Resource: kind.Resource, Subresource: subresource, Namespace: b.namespace, Name: "x",
	}
	if kind.ClusterScoped {
		about.Namespace = ""
	}
	answer, err := b.typed.AuthorizationV1().SubjectAccessReviews().Create(b.T.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: []string{"system:authenticated"}, ResourceAttributes: about},
	}, metav1.CreateOptions{})
	if err != nil {
		b.T.Fatal(err)
	}
	return answer.Status.Allowed
}

func TestUserRolesGiveRightsOnRules(t *testing.T) {
	b := newTestEnv(t)
	b.people()
	const read, write = "get list watch", "create update patch delete deletecollection"
	want := map[string]string{
		"vera policydocuments": read, "vera impliedroles": read,
		"ed policydocuments": read + " " + write, "ed impliedroles": read,
		"adam policydocuments": read + " " + write, "adam impliedroles": read + " " + write,
	}
	ours := []kinds.Kind{kinds.Stores(), kinds.AuthorizationModels(), kinds.PolicyDocuments(), kinds.ImpliedRoles()}
	for _, user := range []string{"vera", "ed", "adam"} {
		for _, kind := range ours {
			for _, subresource := range []string{"", "status", "finalizers"} {
				var may []string
				for verb := range strings.FieldsSeq(read + " " + write + " bind escalate") {
					if b.can(user, verb, kind, subresource) {
						may = append(may, verb)
					}
				}
				who := strings.TrimSuffix(user+" "+kind.Resource+"/"+subresource, "/")
				if got := strings.Join(may, " "); got != want[who] {
					t.Errorf("%s: may %q, want %q", who, got, want[who])
				}
			}
		}
		for _, kind := range []kinds.Kind{kinds.Roles(), kinds.ClusterRoles()} {
			if b.can(user, "bind", kind, "") || b.can(user, "escalate", kind, "") {
				t.Errorf("%s may give more %s than they have", user, kind.Resource)
			}
		}
	}
}

func TestRulesDoNotExtendAdminRole(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.roles("lead", "dev", "free")
	b.role("beyond", rbacv1.PolicyRule{APIGroups: []string{"beyond.entail.test"}, Resources: []string{"things"}, Verbs: []string{"get"}})
	b.people()
	b.do("lead>dev dev>beyond")
	b.serveGuard()
	adam, ed := b.hands("adam"), b.hands("ed")
	testenv.Eventually(t, soon, func() error {
		if err := adam.binds("x", "dev", "adam"); err == nil || !strings.Contains(err.Error(), "implies") {
			return fmt.Errorf("the guard is not in force: %w", err)
		}
		return nil
	})
	webhooks := adam.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"a role two levels up":         {adam.binds("x", "lead", "adam"), []string{"Role lead implies Role beyond by way of Role dev", "adam may not bind"}},
		"a role that gives nothing":    {adam.binds("x", "free", "adam"), nil},
		"a rule to what they lack":     {adam.implies("x", "free", "beyond"), []string{"gives Role beyond to every holder of Role free", "adam may not bind"}},
		"a rule to what implies that":  {adam.implies("x", "free", "lead"), []string{"gives Role beyond with Role lead"}},
		"a rule to what they have":     {adam.implies("x", "free", "ClusterRole/view"), nil},
		"the status of a rule":         {adam.patchesStatus("dev.to.beyond"), []string{"cannot patch resource", "impliedroles/status"}},
		"the webhooks":                 {webhooks.Delete(t.Context(), validating.Name, metav1.DeleteOptions{DryRun: dry()}), []string{"cannot delete resource"}},
		"a rule by who has edit alone": {ed.implies("x", "free", "ClusterRole/view"), []string{"cannot patch resource", "impliedroles"}},
		"a binding by the same":        {ed.binds("x", "free", "ed"), []string{"cannot create resource", "rolebindings"}},
	} {
		t.Run(name, func(t *testing.T) { expectRefusal(t, c.err, c.want...) })
	}
}

func (h dryRunClients) patchesStatus(name string) error {
	_, err := h.rules.Patch(h.T.Context(), name, types.MergePatchType, []byte(`{"status":{"observedGeneration":7}}`), metav1.PatchOptions{DryRun: dry()}, "status")
	return err
}
