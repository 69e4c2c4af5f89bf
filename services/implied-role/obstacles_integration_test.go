//go:build integration

package impliedrole_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

func name(source, child string) string { return infer.GeneratedName(source, role(child)) }

// patch changes a binding as another author would.
func (b *testEnv) patch(name, patch string) {
	b.T.Helper()
	b.Patch(kinds.RoleBindings().InNamespace(b.namespace), name, patch)
}

func (b *testEnv) get(name string) *rbacv1.RoleBinding {
	b.T.Helper()
	all := b.allBindings()
	i := slices.IndexFunc(all, func(x *rbacv1.RoleBinding) bool { return x.Name == name })
	if i < 0 {
		return nil
	}
	return all[i]
}

func TestExplicitBindingWithOurLabelsIsKeptAndReported(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.do("a>b B=a{x} F=b{y}")
	b.becomes("B:b{x}")
	b.patch("B", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"implied-role","role.k8s.com/implied":"true"}}}`)
	b.patch("F", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"implied-role","role.k8s.com/implied":"true"}}}`)
	b.reported("F", "ForeignLabel")
	b.do("-B -a>b")
	b.becomes("")
	if f := b.get("F"); f == nil || len(f.Labels) != 2 || f.Subjects[0].Name != "y" {
		t.Errorf("the foreign binding is %+v", f)
	}
}

// reported waits for an Event about a binding.
func (b *testEnv) reported(name, reason string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		events, err := b.typed.CoreV1().Events(b.namespace).List(b.T.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == name && e.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("no event %s about %s", reason, name)
	})
}

func TestBindingToMissingRoleIsGenerated(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.do("a>b B=a{x} c>ClusterRole/later-cluster")
	b.becomes("B:b{x}")
	if c := b.condition("a>b", "ChildRoleFound", "RoleMissing"); c.Status != metav1.ConditionFalse {
		t.Errorf("condition %+v", c)
	}
	b.roles("b")
	b.condition("a>b", "ChildRoleFound", "RoleFound")
	b.condition("c>ClusterRole/later-cluster", "ChildRoleFound", "RoleMissing")
	cluster := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "later-cluster"}}
	if _, err := b.typed.RbacV1().ClusterRoles().Create(t.Context(), cluster, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.condition("c>ClusterRole/later-cluster", "ChildRoleFound", "RoleFound")
	b.Delete(kinds.Roles().InNamespace(b.namespace), "b")
	b.condition("a>b", "ChildRoleFound", "RoleMissing")
	b.becomes("B:b{x}")
}

func TestSourceDeletedDuringDowntimeIsCollectedWithGeneratedBindings(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	r := b.serve()
	b.do("a>b b>c B1=a{x} B2=a{y}")
	b.becomes("B1:b{x} B1:c{x} B2:b{y} B2:c{y}")
	r.Stop()
	b.do("-B1")
	testenv.Eventually(t, soon, func() error {
		if got := b.generated(); got != "B2:b{y} B2:c{y}" {
			return fmt.Errorf("generated %q", got)
		}
		return nil
	})
	b.CheckNoWrites("the next start", func() { b.serve() })
}

// TestRecreatedRuleDoesNotFailReconcile deletes and recreates rules while their statuses are written.
func TestRecreatedRuleDoesNotFailReconcile(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	var log warningLog
	b.serveWith(func(c *impliedrole.Config) {
		c.Embed.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	b.do("a>b B=a{x}")
	b.becomes("B:b{x}")
	for i := range 40 {
		child := role([]string{"c", "b"}[i%2])
		b.do("-a>b")
		b.rule(ruleName("a>b"), role("a"), child, false)
		if i%10 == 9 {
			b.becomes("B:" + child.Name + "{x}")
		}
	}
	if text := log.String(); strings.Contains(text, "failed") {
		t.Error(text)
	}
}

// warningLog collects the log of a service.
type warningLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *warningLog) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(data)
}

func (w *warningLog) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
