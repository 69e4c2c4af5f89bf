//go:build integration

package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/webhook/internal/validating"
)

// family is a bed with a ConfigMap that mallory may write. By a role on a Secret she may delete ConfigMaps that belong
// to it.
type family struct {
	*bed
	reflector *testenv.Reflector
	one       *corev1.ConfigMap
	secret    metav1.OwnerReference
}

func newFamily(t *testing.T) *family {
	t.Helper()
	f := &family{bed: newGuardedBed(t)}
	f.reflector = f.StartReflector()
	f.register("secret")
	f.register("configmap")
	admin := f.Typed.CoreV1()
	one, err := admin.ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := admin.Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = admin.ConfigMaps(namespace).Delete(ctx, "one", metav1.DeleteOptions{})
		_ = admin.Secrets(namespace).Delete(ctx, "mine", metav1.DeleteOptions{})
	})
	f.one, f.secret = one, owner("v1", "Secret", "mine", secret.UID)
	f.reflector.PublishTargetKind(kinds.TargetKind(event.GroupResource{Resource: "configmaps"}, "v1", "ConfigMap"), "")
	f.reflector.PublishTargetKind(kinds.TargetKind(event.GroupResource{Resource: "secrets"}, "v1", "Secret"), "")
	f.create(kinds.IAMRoles(), "remover", map[string]any{"launchStage": "Beta", "includedPermissions": []any{"core.miloapis.com/configmaps.delete"}})
	f.create(kinds.PolicyBindings(), "on-mine", map[string]any{
		"roleRef":  map[string]any{"name": "remover"},
		"subjects": []any{subjectFromMessage("User", mallory, f.create(kinds.IAMUsers(), mallory, map[string]any{"email": "mallory@example.com"}))},
		"resourceSelector": map[string]any{"resourceRef": map[string]any{
			"apiGroup": "core.miloapis.com", "kind": "Secret", "namespace": namespace, "name": "mine", "uid": string(secret.UID),
		}},
	})
	f.awaitReady()
	return f
}

func owner(version, kind, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: uid}
}

// register registers a kind of the core group.
func (f *family) register(singular string, parents ...any) {
	f.T.Helper()
	f.create(kinds.ProtectedResources(), singular, registration(singular, parents...))
}

func registration(singular string, parents ...any) map[string]any {
	spec := map[string]any{
		"serviceRef": map[string]any{"name": "core.miloapis.com"}, "kind": map[string]string{"secret": "Secret", "configmap": "ConfigMap", "pod": "Pod"}[singular],
		"singular": singular, "plural": singular + "s", "permissions": []any{"get", "delete"},
	}
	if len(parents) > 0 {
		spec["parentResources"] = parents
	}
	return spec
}

// below sets the parents of ConfigMaps.
func (f *family) below(parents ...any) {
	f.T.Helper()
	u, err := f.ResourceClient(kinds.ProtectedResources()).Get(f.T.Context(), "configmap", metav1.GetOptions{})
	if err == nil {
		u.Object["spec"] = registration("configmap", parents...)
		_, err = f.ResourceClient(kinds.ProtectedResources()).Update(f.T.Context(), u, metav1.UpdateOptions{})
	}
	if err != nil {
		f.T.Fatal(err)
	}
}

// give gives the ConfigMap to owners as mallory, as a dry run.
func (f *family) give(owners ...metav1.OwnerReference) error {
	one := f.one.DeepCopy()
	one.OwnerReferences = owners
	_, err := f.Kube.TypedClientAs(f.T, mallory).CoreV1().ConfigMaps(namespace).Update(f.T.Context(), one, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// refused waits until giving the ConfigMap to the owners is refused, because mallory would gain rights.
func (f *family) refused(owners ...metav1.OwnerReference) {
	f.T.Helper()
	testenv.Eventually(f.T, soon, func() error {
		err := f.give(owners...)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "core.miloapis.com/configmaps.delete") {
			return fmt.Errorf("owners %v were set: %w", owners, err)
		}
		return nil
	})
}

// passes waits until giving the ConfigMap to the owners is allowed.
func (f *family) passes(owners ...metav1.OwnerReference) {
	f.T.Helper()
	testenv.Eventually(f.T, soon, func() error { return f.give(owners...) })
}

// permit adds a rule to the RBAC permissions of mallory.
func (f *family) permit(rule rbacv1.PolicyRule) {
	f.T.Helper()
	testenv.Eventually(f.T, soon, func() error {
		roles := f.Typed.RbacV1().ClusterRoles()
		role, err := roles.Get(f.T.Context(), f.malloryRole, metav1.GetOptions{})
		if err == nil {
			role.Rules = append(role.Rules, rule)
			_, err = roles.Update(f.T.Context(), role, metav1.UpdateOptions{})
		}
		return err
	})
}

func secrets() any { return map[string]any{"apiGroup": "core.miloapis.com", "kind": "Secret"} }

// TestWebhookRefusesTakeoverByLaterParent verifies that a user gains no rights by giving an object to
// an owner, as long as the owner's kind is registered as a parent.
func TestWebhookRefusesTakeoverByLaterParent(t *testing.T) {
	f := newFamily(t)
	f.passes(f.secret) // This owner gives no rights yet.
	f.below(secrets())
	f.refused(f.secret)
	f.refused(owner("core.miloapis.com/v1", "Secret", "mine", f.secret.UID))
	f.refused(owner("/v1", "Secret", "mine", f.secret.UID))
	f.refused(owner("v1", "Pod", "any", "p"), f.secret)
	f.below()
	f.passes(f.secret)
	f.below(secrets())
	f.refused(f.secret)
	f.create(kinds.PolicyBindings(), "on-all", map[string]any{
		"roleRef":          map[string]any{"name": "remover"},
		"subjects":         []any{map[string]any{"kind": "Group", "name": "system:authenticated"}},
		"resourceSelector": map[string]any{"resourceKind": map[string]any{"apiGroup": "core.miloapis.com", "kind": "ConfigMap"}},
	})
	f.passes(f.secret)
}

// TestWebhookCoversRegisteredParentsOnly stops the informer. An object then gets no new parent, unless the user may
// escalate there. Owners of other kinds stay allowed.
func TestWebhookCoversRegisteredParentsOnly(t *testing.T) {
	f := newFamily(t)
	f.register("pod")
	f.below(secrets(), map[string]any{"apiGroup": "", "kind": "Pod"})
	f.refused(f.secret)
	defer sync.OnceFunc(f.reflector.Pause())()
	unknown := func(owners ...metav1.OwnerReference) {
		t.Helper()
		testenv.Eventually(t, soon, func() error {
			if err := f.give(owners...); err == nil || strings.Contains(err.Error(), "configmaps.delete") {
				return fmt.Errorf("the guard still decides: %w", err)
			}
			return nil
		})
	}
	pod, service := owner("v1", "Pod", "any", "p"), owner("v1", "Service", "any", "s")
	unknown(f.secret)
	unknown(pod, service)
	f.passes(service)
	f.permit(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"escalate"}})
	f.passes(f.secret, service, owner("core.miloapis.com/v1", "Secret", "other", "o"))
	unknown(f.secret, pod)
	f.permit(rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"escalate"}})
	f.passes(f.secret, pod)
}

// TestWebhookCoversAllOwnersAboveKindLimit registers more kinds than the webhook can name. The
// webhook is then called for every new owner.
func TestWebhookCoversAllOwnersAboveKindLimit(t *testing.T) {
	f := newFamily(t)
	group := strings.Repeat("long-", 20) + "example.com"
	many := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ { // Each is the parent of the next.
			kind, parents := fmt.Sprint("Kind", i), []any{secrets()}
			if i > 0 {
				parents = []any{map[string]any{"apiGroup": group, "kind": fmt.Sprint("Kind", i-1)}}
			}
			f.create(kinds.ProtectedResources(), fmt.Sprint("kind-", i), map[string]any{
				"serviceRef": map[string]any{"name": group}, "kind": kind, "singular": strings.ToLower(kind), "plural": strings.ToLower(kind) + "s",
				"permissions": []any{"get"}, "parentResources": parents,
			})
		}
		f.awaitReady()
	}
	many(0, 255)
	f.below(secrets())
	var more []metav1.OwnerReference
	for i := range 160 { // More owners than usual, all of which count.
		more = append(more, owner("v1", "Pod", fmt.Sprint("pod-", i), types.UID(fmt.Sprint("p", i))))
	}
	f.refused(append(more, f.secret)...)
	f.passes(more...)
	f.below()
	f.passes(f.secret)
	many(255, 257)
	f.below(secrets())
	testenv.Eventually(t, soon, func() error {
		is, err := f.Typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), validating.Name, metav1.GetOptions{})
		if err == nil && len(is.Webhooks[len(is.Webhooks)-1].Rules) != 1 {
			err = errors.New("kinds are named")
		}
		return err
	})
	f.refused(append(more, f.secret)...)
	f.passes(more...)
	defer sync.OnceFunc(f.reflector.Pause())()
	testenv.Eventually(t, soon, func() error {
		if f.give(more...) == nil {
			return errors.New("a Pod is surely no parent")
		}
		return nil
	})
}
