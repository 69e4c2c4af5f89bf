//go:build integration

package webhook_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// TestWebhookRefusesEventTakeoverByOtherGroup registers Events by one of the two groups in which the API server serves
// them. No user may take one over by the other group.
func TestWebhookRefusesEventTakeoverByOtherGroup(t *testing.T) {
	for _, group := range []string{"core.miloapis.com", "events.k8s.io"} {
		t.Run(group, func(t *testing.T) { takeEventOver(t, group) })
	}
}

func takeEventOver(t *testing.T, group string) {
	b := newGuardedBed(t)
	reflector := b.StartReflector()
	b.protect()
	b.create(kinds.ProtectedResources(), "event", map[string]any{
		"serviceRef": map[string]any{"name": group}, "kind": "Event", "singular": "event", "plural": "events",
		"permissions": []any{"delete"}, "parentResources": []any{map[string]any{"apiGroup": projects, "kind": "Project"}},
	})
	b.create(kinds.IAMRoles(), "remover", map[string]any{"launchStage": "Beta", "includedPermissions": []any{group + "/events.delete"}})
	b.create(kinds.Organizations(), "acme", map[string]any{"type": "Standard"})
	mine := b.create(kinds.Projects(), "mine", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	b.create(kinds.PolicyBindings(), "on-mine", map[string]any{
		"roleRef":          map[string]any{"name": "remover"},
		"subjects":         []any{subjectFromMessage("User", mallory, b.create(kinds.IAMUsers(), mallory, map[string]any{"email": "mallory@example.com"}))},
		"resourceSelector": map[string]any{"resourceRef": map[string]any{"apiGroup": projects, "kind": "Project", "name": "mine", "uid": mine}},
	})
	events := b.Typed.CoreV1().Events(namespace)
	_, err := events.Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "one"}, InvolvedObject: corev1.ObjectReference{Namespace: namespace}, Reason: "Tested", Type: corev1.EventTypeNormal,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = events.Delete(context.WithoutCancel(t.Context()), "one", metav1.DeleteOptions{}) })
	reflector.PublishTargetKind(kinds.TargetKind(event.GroupResource{Group: strings.TrimPrefix(group, "core.miloapis.com"), Resource: "events"}, "v1", "Event"), "")
	b.awaitReady()
	typed, dry := b.Kube.TypedClientAs(t, mallory), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	patch := fmt.Appendf(nil, `{"metadata":{"ownerReferences":[{"apiVersion":"%s/v1alpha1","kind":"Project","name":"mine","uid":"%s"}]}}`, projects, mine)
	for served, take := range map[string]func() error{
		"core": func() error {
			_, err := typed.CoreV1().Events(namespace).Patch(t.Context(), "one", types.MergePatchType, patch, dry)
			return err
		},
		"events.k8s.io": func() error {
			_, err := typed.EventsV1().Events(namespace).Patch(t.Context(), "one", types.MergePatchType, patch, dry)
			return err
		},
	} {
		testenv.Eventually(t, soon, func() error {
			if err := take(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), group+"/events.delete") {
				return fmt.Errorf("API group %s: the owner was set: %w", served, err)
			}
			return nil
		})
	}
}
