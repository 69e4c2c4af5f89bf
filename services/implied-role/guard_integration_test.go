//go:build integration

package impliedrole_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/validating"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// mallory may write rules and RoleBindings, and bind the Roles lead, dev, p and free. She holds no other role.
const mallory = "mallory"

// guarded starts an implied-role with a guard, in a namespace where mallory has her rights. There, lead implies dev,
// and dev implies secret-admin. It returns once the API server calls the guard.
func (b *testEnv) guarded(changes ...func(*impliedrole.Config)) *testenv.RunningService {
	b.T.Helper()
	b.roles("lead", "dev", "p", "free")
	b.role("secret-admin", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	b.role(mallory,
		rbacv1.PolicyRule{APIGroups: []string{rolev1alpha1.GroupVersion.Group}, Resources: []string{rolev1alpha1.Resource}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"create", "update", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, ResourceNames: []string{"lead", "dev", "p", "free"}, Verbs: []string{"bind"}},
	)
	b.do(mallory + "=" + mallory + "{" + mallory + "} lead>dev dev>secret-admin")
	running := b.serveGuard(changes...)
	testenv.Eventually(b.T, soon, func() error {
		if err := b.hands(mallory).binds("probe", "dev", mallory); err == nil || !strings.Contains(err.Error(), "implies") {
			return fmt.Errorf("the guard is not in force: %w", err)
		}
		return b.hands(mallory).binds("probe", "free", mallory)
	})
	return running
}

// serveGuard starts an implied-role with a guard that serves the webhooks.
func (b *testEnv) serveGuard(changes ...func(*impliedrole.Config)) *testenv.RunningService {
	b.T.Helper()
	listener := testenv.ListenLoopback(b.T)
	b.Kube.DeleteWebhooksAfter(b.T, validating.Name)
	return b.serveWith(func(c *impliedrole.Config) {
		c.WithoutGuard, c.Admission.Listener, c.Admission.URL = false, listener, "https://"+listener.Addr().String()
		for _, change := range changes {
			change(c)
		}
	})
}

// role creates a Role.
func (b *testEnv) role(name string, rules ...rbacv1.PolicyRule) {
	b.T.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := b.typed.RbacV1().Roles(b.namespace).Create(b.T.Context(), role, metav1.CreateOptions{}); err != nil {
		b.T.Fatal(err)
	}
}

// dryRunClients are the clients of a user in a namespace. Their requests are dry runs.
type dryRunClients struct {
	*testEnv
	typed kubernetes.Interface
	rules dynamic.ResourceInterface
}

func (b *testEnv) hands(user string) dryRunClients {
	b.T.Helper()
	rules := b.Kube.DynamicClientAs(b.T, user).Resource(kinds.ImpliedRoles().GroupVersionResource())
	return dryRunClients{b, b.Kube.TypedClientAs(b.T, user), rules.Namespace(b.namespace)}
}

// binding returns a binding of users to a role, which is "name" or "ClusterRole/name".
func binding(name, roleName string, users ...string) *rbacv1.RoleBinding {
	r := role(roleName)
	made := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: r.Kind(), Name: r.Name},
	}
	for _, user := range users {
		made.Subjects = append(made.Subjects, subject(user))
	}
	return made
}

func dry() []string { return []string{metav1.DryRunAll} }

// patient repeats a call that failed because the API server or the guard was too busy.
func (b *testEnv) patient(try func() error) error {
	b.T.Helper()
	var err error
	testenv.Eventually(b.T, soon, func() error {
		if err = try(); apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) {
			return err
		}
		return nil
	})
	return err
}

func (h dryRunClients) binds(name, role string, users ...string) error {
	return h.patient(func() error {
		_, err := h.typed.RbacV1().RoleBindings(h.namespace).Create(h.T.Context(), binding(name, role, users...), metav1.CreateOptions{DryRun: dry()})
		return err
	})
}

func (h dryRunClients) rebinds(name, role string, users ...string) error {
	return h.patient(func() error {
		_, err := h.typed.RbacV1().RoleBindings(h.namespace).Update(h.T.Context(), binding(name, role, users...), metav1.UpdateOptions{DryRun: dry()})
		return err
	})
}

func (h dryRunClients) patchesBinding(name, patch string) error {
	return h.patient(func() error {
		options := metav1.PatchOptions{DryRun: dry()}
		_, err := h.typed.RbacV1().RoleBindings(h.namespace).Patch(h.T.Context(), name, types.MergePatchType, []byte(patch), options)
		return err
	})
}

// implies applies a rule as a dry run.
func (h dryRunClients) implies(name, parent, child string) error {
	p, c := role(parent), role(child)
	patch := fmt.Sprintf(`{"apiVersion":%q,"kind":"ImpliedRoles","metadata":{"name":%q},"spec":{"inference_rule":`+
		`{"parent_role":%q,"parent_kind":%q,"child_role":%q,"child_kind":%q}}}`, rolev1alpha1.GroupVersion.String(), name, p.Name, p.Kind(), c.Name, c.Kind())
	force := true
	return h.patchesRule(name, types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: "test", Force: &force, DryRun: dry()})
}

func (h dryRunClients) labels(name string) error {
	return h.patchesRule(name, types.MergePatchType, `{"metadata":{"labels":{"team":"a"}}}`, metav1.PatchOptions{DryRun: dry()})
}

func (h dryRunClients) patchesRule(name string, kind types.PatchType, patch string, options metav1.PatchOptions) error {
	return h.patient(func() error {
		_, err := h.rules.Patch(h.T.Context(), name, kind, []byte(patch), options)
		return err
	})
}

// expectRefusal expects a refusal that contains all words, or no refusal if there are no words.
func expectRefusal(t *testing.T, err error, words ...string) {
	t.Helper()
	if (err == nil) != (len(words) == 0) {
		t.Errorf("got %v", err)
	}
	for _, word := range words {
		if err != nil && !strings.Contains(err.Error(), word) {
			t.Errorf("the refusal %q lacks %q", err, word)
		}
	}
}

func TestWebhookRefusesBindingThatImpliesUnbindableRole(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.guarded()
	b.do("standing=lead{alice,bob}")
	standing := binding("system", "lead", "eve")
	standing.Labels = map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}
	if _, err := b.typed.RbacV1().RoleBindings(b.namespace).Create(t.Context(), standing, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = b.typed.RbacV1().RoleBindings(b.namespace).Delete(context.WithoutCancel(t.Context()), standing.Name, metav1.DeleteOptions{})
	})
	b.becomes("standing:dev{alice,bob} standing:secret-admin{alice,bob}")
	h := b.hands(mallory)
	two := []string{"Role lead implies Role secret-admin by way of Role dev", mallory + " may not bind", `"bind" on roles/secret-admin`}
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"one level up":             {h.binds("x", "dev", mallory), []string{"Role dev implies Role secret-admin", mallory + " may not bind"}},
		"two levels up":            {h.binds("x", "lead", mallory), two},
		"a role that implies none": {h.binds("x", "free", mallory), nil},
		"one subject more":         {h.rebinds("standing", "lead", "alice", "bob", mallory), two},
		"another subject":          {h.rebinds("standing", "lead", "alice", mallory), two},
		"one subject less":         {h.rebinds("standing", "lead", "alice"), nil},
		"no subject":               {h.rebinds("standing", "lead"), nil},
		"a label":                  {h.patchesBinding("standing", `{"metadata":{"labels":{"a":"b"}}}`), nil},
		"a label less":             {h.patchesBinding("system", `{"metadata":{"labels":null}}`), two},
		"a name of ours":           {h.binds(infer.GeneratedName("late", role("dev")), "free", mallory), []string{"reserved for RoleBindings of implied-role", infer.IndependentLabel}},
		"what is kept when its source goes": {
			h.patchesBinding(infer.GeneratedName("standing", role("dev")), `{"metadata":{"labels":{"`+infer.IndependentLabel+`":"true"}}}`),
			[]string{"Role dev implies Role secret-admin"},
		},
	} {
		t.Run(name, func(t *testing.T) { expectRefusal(t, c.err, c.want...) })
	}
	b.becomes("standing:dev{alice,bob} standing:secret-admin{alice,bob}")
}

func TestBindingOfManySubjectsRevokesOne(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.guarded()
	users := make([]string, 1500)
	for i := range users {
		users[i] = fmt.Sprintf("user-%d", i)
	}
	everybody := strings.Join(users, ",")
	b.do("many=lead{" + everybody + "}")
	b.becomes("many:dev{" + everybody + "} many:secret-admin{" + everybody + "}")
	h := b.hands(mallory)
	expectRefusal(t, h.rebinds("many", "lead", users[1:]...))
	expectRefusal(t, h.rebinds("many", "lead", append(users[1:], mallory)...), "Role lead implies Role secret-admin by way of Role dev")
	fewer := strings.Join(users[1:], ",")
	b.do("many=lead{" + fewer + "}")
	b.becomes("many:dev{" + fewer + "} many:secret-admin{" + fewer + "}")
}

func TestWebhookRefusesRuleThatImpliesUnbindableRole(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.guarded()
	h, admin := b.hands(mallory), b.hands("system:admin")
	admin.rules = b.rules()
	everywhere := &testEnv{b.Env, b.typed, metav1.NamespaceAll}
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"a child that they may bind":        {h.implies("x", "p", "free"), nil},
		"a child that they may not bind":    {h.implies("x", "p", "secret-admin"), []string{"gives Role secret-admin to every holder of Role p", `"bind" on roles/secret-admin`}},
		"what the child implies":            {h.implies("x", "p", "dev"), []string{"gives Role secret-admin with Role dev to every holder of Role p", mallory + " may not bind"}},
		"what the child's child implies":    {h.implies("x", "p", "lead"), []string{"gives Role secret-admin with Role lead"}},
		"a ClusterRole":                     {h.implies("x", "p", "ClusterRole/view"), []string{`"bind" on clusterroles/view`}},
		"the other end of somebody's rule":  {h.implies("dev.to.secret-admin", "p", "secret-admin"), []string{"secret-admin"}},
		"less by somebody's rule":           {h.implies("dev.to.secret-admin", "dev", "free"), nil},
		"a label on somebody's rule":        {h.labels("dev.to.secret-admin"), nil},
		"a prohibited one":                  {admin.implies("x", "p", "ClusterRole/cluster-admin"), []string{"must not follow from a rule"}},
		"an administrator's":                {admin.implies("x", "p", "ClusterRole/view"), nil},
		"one for all namespaces":            {everywhere.hands(mallory).implies("x", "p", "free"), []string{"at the cluster scope"}},
		"an administrator's for all":        {everywhere.hands("x").admin().implies("x", "p", "free"), []string{"could not find the requested resource"}},
		"an administrator's in kube-system": {b.in("kube-system").hands("x").admin().implies("x", "p", "free"), []string{"no rule is in force in namespace kube-system"}},
	} {
		t.Run(name, func(t *testing.T) { expectRefusal(t, c.err, c.want...) })
	}
}

// admin returns the clients of an administrator in the same namespace.
func (h dryRunClients) admin() dryRunClients {
	return dryRunClients{h.testEnv, h.testEnv.typed, h.testEnv.rules()}
}

func TestWebhookAllowsHolderOfAllPermissions(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.guarded()
	b.role("nodes", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}})
	b.do("boss=ClusterRole/admin{nina} ClusterRole/edit>ClusterRole/view bob=ClusterRole/edit{bob}")
	nina := b.hands("nina")
	expectRefusal(t, nina.binds("carl", "ClusterRole/edit", "carl"))
	expectRefusal(t, nina.rebinds("bob", "ClusterRole/edit", "bob", "carl"))
	b.do("ClusterRole/view>nodes")
	testenv.Eventually(t, soon, func() error {
		if nina.binds("carl", "ClusterRole/edit", "carl") == nil {
			return errors.New("she gives more than she has")
		}
		return nil
	})
	expectRefusal(t, nina.binds("carl", "ClusterRole/edit", "carl"), "ClusterRole edit implies Role nodes", `"bind" on roles/nodes`)
	b.do("ClusterRole/view>later -ClusterRole/view>nodes")
	expectRefusal(t, nina.binds("carl", "ClusterRole/edit", "carl"), "Role later") // The role does not exist yet.
}

func TestWebhookRefusesTooManyImpliedRoles(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.guarded()
	for i := range 70 {
		b.rule(fmt.Sprintf("many-%d", i), role("p"), role(fmt.Sprintf("many-%d", i)), false)
	}
	expectRefusal(t, b.hands(mallory).binds("x", "p", mallory), "Role p implies Role many-", "69 further roles", `"bind" on all roles`)
	expectRefusal(t, b.hands(mallory).binds("x", "free", mallory))
}

// TestWebhookUsesNewRuleAtOnce adds rules beside many others, and at once makes a binding that implies more because
// of them. It does so with a current informer, with a silent watcher, and without NATS.
func TestWebhookUsesNewRuleAtOnce(t *testing.T) {
	b := newTestEnv(t)
	m := b.StartReflector()
	b.guarded()
	for i := range 30 {
		b.rule(fmt.Sprintf("filler-%d", i), role(fmt.Sprintf("filler-%d", i)), role("free"), false)
	}
	b.AwaitNoCalls()
	h := b.hands(mallory)
	known := func(t *testing.T) {
		for range 10 {
			expectRefusal(t, h.binds("x", "p", mallory))
			b.do("p>secret-admin")
			expectRefusal(t, h.binds("x", "p", mallory), "Role p implies Role secret-admin")
			b.do("-p>secret-admin")
		}
	}
	t.Run("by a view that follows", known)
	release := m.Pause()
	t.Run("though the watcher tells nothing", known)
	t.Run("though the watcher does not tell of a change", func(t *testing.T) {
		testenv.Eventually(t, soon, func() error { return h.binds("x", "p", mallory) })
		b.rule("filler-0", role("p"), role("secret-admin"), false) // The number of rules stays the same.
		testenv.Eventually(t, soon, func() error {
			if h.binds("x", "p", mallory) == nil {
				return errors.New("she may bind it")
			}
			return nil
		})
		b.rule("filler-0", role("filler-0"), role("free"), false)
	})
	release()
	b.NATS.Stop()
	t.Run("though the bus is away", func(t *testing.T) {
		known(t)
		b.rule("filler-0", role("p"), role("secret-admin"), false)
		expectRefusal(t, h.binds("x", "p", mallory), "Role p implies Role secret-admin")
		b.rule("filler-0", role("filler-0"), role("free"), false)
	})
	b.NATS.Start(t)
	t.Run("when it is back", known)
}

func TestWithoutWebhookOnlyAdministratorsMayBind(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.guarded().Stop()
	expectRefusal(t, b.hands(mallory).binds("x", "free", mallory), "rolebindings.role.k8s.com")
	expectRefusal(t, b.hands(mallory).implies("x", "p", "free"), "impliedroles.role.k8s.com")
	b.do("x=lead{alice}")
}

// TestWebhookCoversNamespacesWithRulesOnly makes bindings in a namespace without rules, and after its
// first rule.
func TestWebhookCoversNamespacesWithRulesOnly(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	running := b.guarded()
	other, third := b.in("other"), b.in("third")
	for _, b := range []*testEnv{other, third} {
		b.roles("p")
		b.role("q", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
		b.role(mallory,
			rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"create"}},
			rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, ResourceNames: []string{"p"}, Verbs: []string{"bind"}},
		)
		b.do(mallory + "=" + mallory + "{" + mallory + "}")
		testenv.Eventually(t, soon, func() error { return b.hands(mallory).binds("x", "p", mallory) })
	}
	b.NATS.Stop()
	other.do("p>q")
	expectRefusal(t, other.hands(mallory).binds("x", "p", mallory), "Role p implies Role q")
	b.NATS.Start(t)
	other.do("B=p{x}")
	other.generates("B:q{x}")
	configurations := b.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	c, err := configurations.Get(t.Context(), validating.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const covered = "In[other team]"
	named := c.Webhooks[1].NamespaceSelector.MatchExpressions[0]
	if got := fmt.Sprint(named.Operator, named.Values); got != covered {
		t.Errorf("got covered namespaces %s", got)
	}
	c.Webhooks[1].NamespaceSelector.MatchExpressions[0] = metav1.LabelSelectorRequirement{Key: named.Key, Operator: metav1.LabelSelectorOpDoesNotExist}
	if _, err := configurations.Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, soon, func() error { // The API server may use an older configuration than it returns.
		c, err := configurations.Get(t.Context(), validating.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		is := c.Webhooks[1].NamespaceSelector.MatchExpressions[0]
		if got := fmt.Sprint(is.Operator, is.Values); got != covered || other.hands(mallory).binds("x", "p", mallory) == nil {
			return fmt.Errorf("the removed namespace is not restored: covered namespaces %s", got)
		}
		return nil
	})
	running.Stop()
	expectRefusal(t, other.hands(mallory).binds("x", "p", mallory), "rolebindings.role.k8s.com")
	expectRefusal(t, third.hands(mallory).binds("x", "p", mallory))
}

func TestRuleIsRefusedInUnsupportedNamespace(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.do("a>b B=a{x}")
	unguarded := b.serveWith(func(c *impliedrole.Config) { c.WithoutGuard = false })
	if c := b.condition("a>b", "Accepted", "Unguarded"); !strings.Contains(c.Message, "--admission-service") {
		t.Errorf("got message %q", c.Message)
	}
	b.AwaitNoCalls()
	b.generates("")
	unguarded.Stop()
	b.serveGuard()
	b.becomes("B:b{x}")
}

// BenchmarkBinding makes RoleBindings as mallory, beside few and many rules.
func BenchmarkBinding(bench *testing.B) {
	for _, n := range []int{0, 1000, 3000} {
		bench.Run(fmt.Sprintf("rules=%d", n), func(bench *testing.B) {
			b := newTestEnv(bench)
			b.StartReflector()
			b.guarded()
			for i := range n {
				b.rule(fmt.Sprintf("filler-%d", i), role(fmt.Sprintf("filler-%d", i)), role(fmt.Sprintf("filled-%d", i)), false)
			}
			b.AwaitNoCalls()
			h := b.hands(mallory)
			for bench.Loop() {
				if err := h.binds("x", "free", mallory); err != nil {
					bench.Fatal(err)
				}
			}
		})
	}
}
