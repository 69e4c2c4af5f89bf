//go:build integration

package webhook_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// TestWebhookRefusesMembershipWithUnobservedRights verifies that rights of a group on an unobserved object still count.
// They act again once the object is observed, so joining requires them meanwhile.
func TestWebhookRefusesMembershipWithUnobservedRights(t *testing.T) {
	f := newFamily(t)
	maps := kinds.TargetKind(event.GroupResource{Resource: "configmaps"}, "v1", "ConfigMap")
	staff := subjectFromMessage("Group", "staff", f.create(kinds.IAMGroups(), "staff", nil))
	staff["namespace"] = namespace
	f.create(kinds.PolicyBindings(), "on-one", map[string]any{
		"roleRef": map[string]any{"name": "remover"}, "subjects": []any{staff},
		"resourceSelector": map[string]any{"resourceRef": map[string]any{
			"apiGroup": "core.miloapis.com", "kind": "ConfigMap", "namespace": namespace, "name": "one", "uid": string(f.one.UID),
		}},
	})
	acts := func(want bool) {
		t.Helper()
		testenv.Eventually(t, soon, func() error {
			answer, err := f.client.WhoCan(t.Context(), &accessv1.WhoCanRequest{Verb: "delete", Resource: &accessv1.Resource{
				Resource: "configmaps", Namespace: namespace, Name: "one",
			}})
			if err != nil || len(answer.GetHolders()) > 0 != want {
				return fmt.Errorf("got holders %v, %w", answer.GetHolders(), err)
			}
			return nil
		})
	}
	join := map[string]any{"userRef": map[string]any{"name": mallory}, "groupRef": map[string]any{"name": "staff", "namespace": namespace}}
	refused := func(when string) {
		t.Helper()
		if why := f.tries(kinds.GroupMemberships(), "new", join); !strings.Contains(why, "the group has") {
			t.Errorf("%s: got refusal %q", when, why)
		}
	}
	acts(true)
	refused("all kinds observed")
	f.reflector.PublishTargetKind(maps, "the API server is silent")
	acts(false)
	refused("kind of the object not observed")
	f.reflector.PublishTargetKind(maps, "")
	acts(true)
	refused("kind observed again")
	if err := f.Typed.CoreV1().ConfigMaps(namespace).Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, soon, func() error { return f.try(kinds.GroupMemberships(), "new", join) })
}
