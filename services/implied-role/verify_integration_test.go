//go:build integration

package impliedrole_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// forge writes a newer state of an object to NATS, with a version that the API server has not reached.
func (b *testEnv) forge(kind kinds.Kind, name string, change func(object map[string]any)) {
	b.T.Helper()
	b.PublishForgery(testenv.Forgery{Kind: kind, Namespace: b.namespace, Name: name, Edit: func(c *event.Change, object map[string]any) {
		change(object)
		c.ResourceVersion += "0"
		c.Generation++
	}}, 0)
}

func TestForgedChangeDoesNotGrant(t *testing.T) {
	for what, forge := range map[string]func(b *testEnv){
		"a binding": func(b *testEnv) {
			b.forge(kinds.RoleBindings(), "B1", func(o map[string]any) {
				o["subjects"] = []any{map[string]any{"kind": "User", "apiGroup": rbacv1.GroupName, "name": "mallory"}}
			})
		},
		"a rule": func(b *testEnv) {
			b.forge(kinds.ImpliedRoles(), ruleName("x>y"), func(o map[string]any) {
				o["spec"].(map[string]any)["inference_rule"].(map[string]any)["parent_role"] = "a"
			})
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := newTestEnv(t)
			b.StartReflector()
			b.serve()
			b.do("a>b x>y B1=a{u} B2=x{v}")
			b.becomes("B1:b{u} B2:y{v}")
			b.AwaitNoCalls()
			forge(b)
			b.do("B3=a{w}") // The service has received the forged state before it generates this.
			b.AwaitNoCalls()
			list, err := b.typed.RbacV1().RoleBindings(b.namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, binding := range list.Items {
				for _, s := range binding.Subjects {
					if s.Name == "mallory" || s.Name == "u" && strings.HasPrefix(binding.RoleRef.Name, "y") {
						t.Errorf("%s binds %s to %s", binding.Name, s.Name, binding.RoleRef.Name)
					}
				}
			}
		})
	}
}

func TestForgedDeletionStillRevokes(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.do("a>b B1=a{u}")
	b.becomes("B1:b{u}")
	b.AwaitNoCalls()
	b.PublishForgery(testenv.Forgery{Kind: kinds.RoleBindings(), Namespace: b.namespace, Name: name("B1", "b"), Edit: func(c *event.Change, _ map[string]any) {
		c.Deleted = true
	}}, 1_000_000)
	b.do("B3=a{w}") // The service has acted on the forged state before it generates this.
	b.becomes("B1:b{u} B3:b{w}")
	b.AwaitNoCalls()
	b.do("-a>b")
	b.becomes("")
}
