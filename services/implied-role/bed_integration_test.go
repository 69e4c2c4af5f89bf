//go:build integration

package impliedrole_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/implied-role/infer"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

const soon = 60 * time.Second

// testEnv is the test environment of an implied-role, with one namespace.
type testEnv struct {
	*testenv.Env
	typed     kubernetes.Interface
	namespace string
}

func newTestEnv(t testing.TB) *testEnv {
	t.Helper()
	b := testenv.NewEnv(t)
	return (&testEnv{b, b.Typed, ""}).in("team")
}

// in creates a namespace and returns the bed with it.
func (b *testEnv) in(namespace string) *testEnv {
	b.T.Helper()
	b.CreateNamespace(namespace)
	return &testEnv{b.Env, b.typed, namespace}
}

// serve starts an implied-role. It ends at the latest with the test.
func (b *testEnv) serve() *testenv.RunningService {
	b.T.Helper()
	return b.serveWith(func(*impliedrole.Config) {})
}

// serveWith starts an implied-role with changed settings.
func (b *testEnv) serveWith(change func(*impliedrole.Config)) *testenv.RunningService {
	b.T.Helper()
	cfg := impliedrole.Defaults()
	cfg.WithoutGuard = true // Tests of the guard turn it on.
	listener := b.ConfigureService(topology.ImpliedRole, &cfg.Config.Config)
	change(&cfg)
	return b.Serve(listener, func(ctx context.Context) error { return impliedrole.Run(ctx, cfg) })
}

// role parses "name" or "ClusterRole/name".
func role(text string) infer.Role {
	name, cluster := strings.CutPrefix(text, infer.KindClusterRole+"/")
	return infer.Role{Name: name, Cluster: cluster}
}

// subject parses "alice", "group:team" or "sa:namespace:name".
func subject(text string) rbacv1.Subject {
	switch parts := strings.Split(text, ":"); parts[0] {
	case "group":
		return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: parts[1]}
	case "sa":
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: parts[1], Name: parts[2]}
	}
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: text}
}

// ruleName returns a valid name for a rule such as "a>b".
func ruleName(text string) string {
	return strings.ToLower(strings.NewReplacer(">", ".to.", "/", ".", "_", "-", ":", ".").Replace(text))
}

// do executes operations in the form of testdata/acceptance.txt.
func (b *testEnv) do(ops string) {
	b.T.Helper()
	for op := range strings.FieldsSeq(ops) {
		gone := strings.HasPrefix(op, "-")
		op = strings.TrimPrefix(op, "-")
		switch {
		case strings.Contains(op, "="):
			name, rest, _ := strings.Cut(op, "=")
			roleName, list, _ := strings.Cut(strings.TrimSuffix(rest, "}"), "{")
			b.bind(name, role(roleName), strings.FieldsFunc(list, func(r rune) bool { return r == ',' }))
		case strings.Contains(op, ">"):
			name, rule, named := strings.Cut(op, ":")
			if !named {
				rule = name
			}
			parent, child, _ := strings.Cut(rule, ">")
			b.rule(ruleName(name), role(parent), role(child), gone)
		default:
			b.Delete(kinds.RoleBindings().InNamespace(b.namespace), op)
		}
	}
}

func (b *testEnv) bindings() dynamic.ResourceInterface {
	return b.ResourceClient(kinds.RoleBindings()).Namespace(b.namespace)
}

func (b *testEnv) rules() dynamic.ResourceInterface {
	return b.ResourceClient(kinds.ImpliedRoles()).Namespace(b.namespace)
}

// apply applies an object in the namespace, as a user would.
func (b *testEnv) apply(kind kinds.Kind, name string, fields map[string]any) error {
	return b.patient(func() error {
		_, err := b.Kube.ApplyFields(b.T, kind.InNamespace(b.namespace), name, fields)
		return err
	})
}

func (b *testEnv) bind(name string, r infer.Role, who []string) {
	b.T.Helper()
	subjects := []rbacv1.Subject{}
	for _, text := range who {
		subjects = append(subjects, subject(text))
	}
	if err := b.apply(kinds.RoleBindings(), name, map[string]any{
		"roleRef": map[string]any{"apiGroup": rbacv1.GroupName, "kind": r.Kind(), "name": r.Name}, "subjects": subjects,
	}); err != nil {
		b.T.Fatal(err)
	}
}

func (b *testEnv) rule(name string, parent, child infer.Role, gone bool) {
	b.T.Helper()
	var err error
	if gone {
		err = b.rules().Delete(b.T.Context(), name, metav1.DeleteOptions{})
	} else {
		err = b.apply(kinds.ImpliedRoles(), name, map[string]any{"spec": map[string]any{"inference_rule": map[string]any{
			"parent_role": parent.Name, "parent_kind": parent.Kind(), "child_role": child.Name, "child_kind": child.Kind(),
		}}})
	}
	if err != nil {
		b.T.Fatal(err)
	}
}

// roles creates Roles without permissions.
func (b *testEnv) roles(names ...string) {
	b.T.Helper()
	for _, name := range names {
		b.role(name)
	}
}

func (b *testEnv) allBindings() []*rbacv1.RoleBinding {
	b.T.Helper()
	return testenv.ListTyped[rbacv1.RoleBinding](b.Env, kinds.RoleBindings().InNamespace(b.namespace))
}

func (b *testEnv) allRules() []*rolev1alpha1.ImpliedRoles {
	b.T.Helper()
	return testenv.ListTyped[rolev1alpha1.ImpliedRoles](b.Env, kinds.ImpliedRoles().InNamespace(b.namespace))
}

// readLiveObject decodes a binding as the service does.
func readLiveObject(t testing.TB, object *rbacv1.RoleBinding) *infer.Binding {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	b := &infer.Binding{}
	if err := json.Unmarshal(data, b); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *testEnv) read(objects []*rbacv1.RoleBinding) []*infer.Binding {
	b.T.Helper()
	list := make([]*infer.Binding, len(objects))
	for i, o := range objects {
		list[i] = readLiveObject(b.T, o)
	}
	return list
}

// generated lists the generated bindings in the form of testdata/acceptance.txt.
func (b *testEnv) generated() string {
	b.T.Helper()
	var list []string
	for _, binding := range b.read(b.allBindings()) {
		if !binding.IsGenerated() {
			continue
		}
		var who []string
		for _, s := range binding.Subjects {
			who = append(who, strings.TrimPrefix(s.Kind+"/"+s.Namespace+"/"+s.Name, "User//"))
		}
		list = append(list, binding.Source+":"+binding.Role.String()+"{"+strings.Join(who, ",")+"}")
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// becomes waits until the generated bindings are as wanted and the namespace is consistent.
func (b *testEnv) becomes(want string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		if got := b.generated(); got != want {
			return fmt.Errorf("generated %q, want %q", got, want)
		}
		return b.consistent()
	})
}

// identities returns the UIDs of the given generated bindings, by source and role as "B:role".
func (b *testEnv) identities(pairs string) map[string]types.UID {
	b.T.Helper()
	all := map[string]types.UID{}
	for _, binding := range b.read(b.allBindings()) {
		if binding.IsGenerated() {
			all[binding.Source+":"+binding.Role.String()] = binding.UID
		}
	}
	maps.DeleteFunc(all, func(pair string, _ types.UID) bool { return !slices.Contains(strings.Fields(pairs), pair) })
	return all
}

func ruleOf(r *rolev1alpha1.ImpliedRoles) infer.Rule {
	said := r.Spec.InferenceRule
	parent, flaw := infer.ParseRole(said.ParentKind, said.ParentRole)
	child, other := infer.ParseRole(said.ChildKind, said.ChildRole)
	return infer.Rule{Name: r.Name, Created: r.CreationTimestamp.Time, Parent: parent, Child: child, Flaw: errors.Join(flaw, other)}
}

// consistent returns an error unless the namespace matches the result of [infer.Namespace] for its rules and explicit
// bindings.
func (b *testEnv) consistent() error {
	b.T.Helper()
	ns := infer.NamespaceInput{Name: b.namespace, Bindings: b.read(b.allBindings())}
	rules := b.allRules()
	for _, r := range rules {
		ns.Rules = append(ns.Rules, ruleOf(r))
	}
	o := infer.EvaluateNamespace(ns, infer.DefaultPolicy())
	for _, a := range o.PlannedActions(ns.Bindings) {
		return fmt.Errorf("%s of %s is left to do", a.Verb, a.Name)
	}
	for i, r := range rules {
		want := o.Rules.StatusWithChildren(o.Rules.Rules()[i], infer.StatusInput{Exists: func(infer.Role) bool { return true }})
		if got := strings.Join(r.Status.Inferences.ChildRoles, " "); got != texts(want.Children) || r.Status.Inferences.ParentRole != want.Parent.String() {
			return fmt.Errorf("the status of rule %s is %+v, want %s", r.Name, r.Status.Inferences, texts(want.Children))
		}
		for _, c := range want.Conditions() {
			if c.Type == rolev1alpha1.ChildRoleFound {
				continue // The roles of tests need not exist.
			}
			got := meta.FindStatusCondition(r.Status.Conditions, c.Type)
			named := c.Type != rolev1alpha1.Acyclic || got != nil && got.Message == c.Message // Its message names the cycle.
			if got == nil || got.Reason != c.Reason || got.Status != c.Status || got.ObservedGeneration != r.Generation || !named {
				return fmt.Errorf("condition %s of rule %s is %+v, want %+v", c.Type, r.Name, got, c)
			}
		}
	}
	return nil
}

func texts(roles []infer.Role) string {
	list := make([]string, len(roles))
	for i, r := range roles {
		list[i] = r.String()
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// condition waits until a condition of a rule has this reason at the current generation, and returns the condition.
func (b *testEnv) condition(rule, kind, reason string) metav1.Condition {
	b.T.Helper()
	return b.AwaitCondition(kinds.ImpliedRoles().InNamespace(b.namespace), ruleName(rule), kind, reason)
}
