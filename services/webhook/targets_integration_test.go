//go:build integration

package webhook_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// TestBindingOnRegisteredKindLastsWithObject binds a user on one object of a registered kind. The
// binding acts on that object only, and only while it exists.
func TestBindingOnRegisteredKindLastsWithObject(t *testing.T) {
	b := newBed(t)
	maps, client := kinds.TargetKind(event.GroupResource{Resource: "configmaps"}, "v1", "ConfigMap"), b.Typed.CoreV1().ConfigMaps(namespace)
	reflector := b.StartReflector()
	b.create(kinds.ProtectedResources(), "configmap", map[string]any{
		"serviceRef": map[string]any{"name": "core.miloapis.com"}, "kind": "ConfigMap", "singular": "configmap", "plural": "configmaps", "permissions": []any{"get"},
	})
	b.create(kinds.IAMRoles(), "getter", map[string]any{"launchStage": "Beta", "includedPermissions": []any{"core.miloapis.com/configmaps.get"}})
	alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	create := func() string {
		t.Helper()
		made, err := client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return string(made.UID)
	}
	remove := func() {
		t.Helper()
		if err := client.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	bind := func(name, uid string) {
		t.Helper()
		b.create(kinds.PolicyBindings(), name, map[string]any{
			"roleRef": map[string]any{"name": "getter"}, "subjects": []any{subjectFromMessage("User", "alice", alice)},
			"resourceSelector": map[string]any{"resourceRef": map[string]any{
				"apiGroup": "core.miloapis.com", "kind": "ConfigMap", "namespace": namespace, "name": "one", "uid": uid,
			}},
		})
	}
	bind("one", create())
	b.awaitReady()
	ask := func(in, name string) (bool, error) {
		answer, err := b.client.CheckAccess(t.Context(), &accessv1.CheckAccessRequest{
			Subject: &accessv1.Subject{User: "alice"}, Verb: "get",
			Resource: &accessv1.Resource{ApiGroup: "core.miloapis.com", Resource: "configmaps", Namespace: in, Name: name},
		})
		return answer.GetAllowed(), err
	}
	may := func(when string, want bool) {
		t.Helper()
		testenv.Eventually(t, soon, func() error {
			if is, err := ask(namespace, "one"); err != nil || is != want {
				return fmt.Errorf("%s: got allowed %v, want %v, %w", when, is, want, err)
			}
			return nil
		})
		for in, name := range map[string]string{"kube-system": "one", namespace: "other"} {
			if is, err := ask(in, name); is || err != nil {
				t.Errorf("%s: alice is allowed %s in %s, %v", when, name, in, err)
			}
		}
	}
	may("before its kind is observed", false)
	reflector.PublishTargetKind(maps, "")
	may("once it is observed", true)
	remove()
	may("after the deletion", false)
	uid := create()
	may("other object of the same name", false)
	bind("another", uid)
	may("by a binding on that", true)
	reflector.PublishTargetKind(maps, "the API server is silent")
	may("kind no longer observed", false)
	remove()
}
