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

// TestWebhookRefusesOwnerTakeover registers a kind below projects. A user that may write its objects must not
// gain rights by giving one to an own project.
func TestWebhookRefusesOwnerTakeover(t *testing.T) {
	b := newGuardedBed(t)
	reflector := b.StartReflector()
	b.protect()
	b.create(kinds.ProtectedResources(), "configmap", map[string]any{
		"serviceRef": map[string]any{"name": "core.miloapis.com"}, "kind": "ConfigMap", "singular": "configmap", "plural": "configmaps",
		"permissions": []any{"delete"}, "parentResources": []any{map[string]any{"apiGroup": projects, "kind": "Project"}},
	})
	b.create(kinds.IAMRoles(), "remover", map[string]any{"launchStage": "Beta", "includedPermissions": []any{"core.miloapis.com/configmaps.delete"}})
	b.create(kinds.Organizations(), "acme", map[string]any{"type": "Standard"})
	mine := b.create(kinds.Projects(), "mine", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	uid := b.create(kinds.IAMUsers(), mallory, map[string]any{"email": "mallory@example.com"})
	remover := func(name string, on map[string]any) {
		b.create(kinds.PolicyBindings(), name, map[string]any{
			"roleRef": map[string]any{"name": "remover"}, "subjects": []any{subjectFromMessage("User", mallory, uid)}, "resourceSelector": on,
		})
	}
	remover("on-mine", map[string]any{"resourceRef": map[string]any{"apiGroup": projects, "kind": "Project", "name": "mine", "uid": mine}})
	maps := b.Typed.CoreV1().ConfigMaps(namespace)
	one, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = maps.Delete(context.WithoutCancel(t.Context()), "one", metav1.DeleteOptions{}) })
	reflector.PublishTargetKind(kinds.TargetKind(event.GroupResource{Resource: "configmaps"}, "v1", "ConfigMap"), "")
	b.awaitReady()
	one.OwnerReferences = []metav1.OwnerReference{{APIVersion: projects + "/v1alpha1", Kind: "Project", Name: "mine", UID: types.UID(mine)}}
	taken := func(refused bool) func() error {
		return func() error {
			_, err := b.Kube.TypedClientAs(t, mallory).CoreV1().ConfigMaps(namespace).Update(t.Context(), one, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			if is := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "core.miloapis.com/configmaps.delete"); is != refused || !is && err != nil {
				return fmt.Errorf("got refused %v, want %v: %w", is, refused, err)
			}
			return nil
		}
	}
	testenv.Eventually(t, soon, taken(true))
	remover("on-all", map[string]any{"resourceKind": map[string]any{"apiGroup": "core.miloapis.com", "kind": "ConfigMap"}})
	testenv.Eventually(t, soon, taken(false))
	testenv.Eventually(t, soon, func() error { // RBAC no longer lets mallory give objects to projects.
		roles := b.Typed.RbacV1().ClusterRoles()
		role, err := roles.Get(t.Context(), b.malloryRole, metav1.GetOptions{})
		if err == nil {
			role.Rules[0].Verbs = []string{"get"}
			_, err = roles.Update(t.Context(), role, metav1.UpdateOptions{})
		}
		return err
	})
	testenv.Eventually(t, soon, func() error {
		_, err := b.Kube.TypedClientAs(t, mallory).CoreV1().ConfigMaps(namespace).Update(t.Context(), one, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "needs the verb bind on that") {
			return fmt.Errorf("without bind on the project: %w", err)
		}
		return nil
	})
}

// TestWebhookRefusesTakeoverOfUnknownKind verifies that a kind in the group of IAM need not be a kind of
// IAM.
func TestWebhookRefusesTakeoverOfUnknownKind(t *testing.T) {
	b := newGuardedBed(t)
	reflector := b.StartReflector()
	pond := kinds.TargetKind(event.GroupResource{Group: "iam.miloapis.com", Resource: "ponds"}, "v1", "Pond")
	pond.ClusterScoped = true
	b.Kube.ApplyCRD(t, pond)
	b.protect()
	b.create(kinds.ProtectedResources(), "pond", map[string]any{
		"serviceRef": map[string]any{"name": "iam.miloapis.com"}, "kind": "Pond", "singular": "pond", "plural": "ponds",
		"permissions": []any{"delete"}, "parentResources": []any{map[string]any{"apiGroup": projects, "kind": "Project"}},
	})
	b.create(kinds.IAMRoles(), "remover", map[string]any{"launchStage": "Beta", "includedPermissions": []any{"iam.miloapis.com/ponds.delete"}})
	b.create(kinds.Organizations(), "acme", map[string]any{"type": "Standard"})
	mine := b.create(kinds.Projects(), "mine", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	b.create(kinds.PolicyBindings(), "on-mine", map[string]any{
		"roleRef":          map[string]any{"name": "remover"},
		"subjects":         []any{subjectFromMessage("User", mallory, b.create(kinds.IAMUsers(), mallory, map[string]any{"email": "mallory@example.com"}))},
		"resourceSelector": map[string]any{"resourceRef": map[string]any{"apiGroup": projects, "kind": "Project", "name": "mine", "uid": mine}},
	})
	testenv.Eventually(t, soon, func() error {
		_, err := b.ResourceClient(pond).Create(t.Context(), b.object(pond, "one", nil), metav1.CreateOptions{})
		return err
	})
	reflector.PublishTargetKind(pond, "")
	b.awaitReady()
	testenv.Eventually(t, soon, func() error {
		one, err := b.ResourceClient(pond).Get(t.Context(), "one", metav1.GetOptions{})
		if err != nil {
			return err
		}
		one.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: projects + "/v1alpha1", Kind: "Project", Name: "mine", UID: types.UID(mine)}})
		_, err = b.Kube.DynamicClientAs(t, mallory).Resource(pond.GroupVersionResource()).Update(t.Context(), one, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "iam.miloapis.com/ponds.delete") {
			return fmt.Errorf("the owner was set: %w", err)
		}
		return nil
	})
}
