//go:build integration

package impliedrole_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// secret makes the Roles boss, without permissions, and secret-admin. It lets mallory patch RoleBindings, but bind
// neither role.
func (b *testEnv) secret() {
	b.T.Helper()
	for name, rule := range map[string][]rbacv1.PolicyRule{
		"boss": nil, "secret-admin": {{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}},
		"patcher": {{Verbs: []string{"get", "patch"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}}},
	} {
		b.role(name, rule...)
	}
	b.do("patchers=patcher{mallory}")
}

// strip patches a RoleBinding as mallory. Kubernetes allows this without the right to bind if subjects and role stay
// the same.
func (b *testEnv) strip(name, patch string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		_, err := b.hands("mallory").typed.RbacV1().RoleBindings(b.namespace).Patch(b.T.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

// reads waits until Kubernetes allows a user to read secrets, or refuses it.
func (b *testEnv) reads(user string, want bool) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		review, err := b.hands(user).typed.AuthorizationV1().SelfSubjectAccessReviews().Create(b.T.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: b.namespace, Verb: "get", Resource: "secrets"},
			},
		}, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed != want {
			err = fmt.Errorf("%s reads secrets: %v", user, review.Status.Allowed)
		}
		return err
	})
}

// holds waits until every answer agrees on whether eve has a role, and everything is in step.
func (b *testEnv) holds(client inferencev1connect.InferenceServiceClient, role string, want bool) {
	b.T.Helper()
	ctx, r := b.T.Context(), &inferencev1.Role{Name: role}
	who := &inferencev1.Subject{Kind: "User", Name: "eve"}
	testenv.Eventually(b.T, soon, func() error {
		explained, err := client.ExplainRole(ctx, &inferencev1.ExplainRoleRequest{Namespace: b.namespace, Subject: who, Role: r})
		if isAnswerError(err) || explained.GetHeld() != want {
			return fmt.Errorf("explained %v, %w", explained, err)
		}
		holders, err := client.WhoHasRole(ctx, &inferencev1.WhoHasRoleRequest{Namespace: b.namespace, Role: r})
		if isAnswerError(err) || strings.Contains(fmt.Sprint(holders.GetHolders()), "eve") != want {
			return fmt.Errorf("holders %v, %w", holders, err)
		}
		drift, err := client.CheckDrift(ctx, &inferencev1.CheckDriftRequest{Namespace: b.namespace})
		if err != nil || !drift.GetInStep() {
			return fmt.Errorf("drift %v, %w", drift, err)
		}
		return nil
	})
}

// TestStrippedGeneratedBindingIsRepaired strips a generated binding of everything that a user without
// the right to bind can remove. It then strips everything that an administrator can.
func TestStrippedGeneratedBindingIsRepaired(t *testing.T) {
	const stripped = `{"metadata":{"labels":null,"annotations":null,"ownerReferences":null}}`
	for what, strip := range map[string]func(b *testEnv, ours string){
		"its owner": func(b *testEnv, ours string) { b.strip(ours, `{"metadata":{"ownerReferences":null}}`) },
		"its owner, for another": func(b *testEnv, ours string) {
			b.strip(ours, fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","name":"patchers","uid":%q}]}}`,
				b.get("patchers").UID))
		},
		"its label": func(b *testEnv, ours string) {
			b.patch(ours, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"me"}}}`)
		},
		"everything": func(b *testEnv, ours string) { b.patch(ours, stripped) },
	} {
		t.Run(what, func(t *testing.T) {
			b := newTestEnv(t)
			b.StartReflector()
			r := b.serve()
			b.secret()
			b.do("boss>secret-admin secret-admin>other src=boss{eve}")
			b.becomes("src:other{eve} src:secret-admin{eve}")
			b.reads("eve", true)
			strip(b, name("src", "secret-admin"))
			b.becomes("src:other{eve} src:secret-admin{eve}")
			r.Stop()
			strip(b, name("src", "secret-admin")) // The service cannot repair it now.
			b.do("-src -boss>secret-admin")
			client := b.client(b.serve())
			b.reads("eve", false)
			b.holds(client, "secret-admin", false)
			b.holds(client, "other", false)
		})
	}
}

func TestFinalizerDoesNotBlockRevocation(t *testing.T) {
	for what, c := range map[string]struct {
		before func(b *testEnv)
		change string
		eve    bool
	}{
		"its source goes": {func(*testEnv) {}, "-src", false},
		"its rule goes":   {func(*testEnv) {}, "-boss>secret-admin", false},
		"a subject goes while it is being deleted":    {func(b *testEnv) { b.do("-" + name("src", "secret-admin")) }, "src=boss{bob}", false},
		"its source goes while it is being deleted":   {func(b *testEnv) { b.do("-" + name("src", "secret-admin")) }, "-src", false},
		"nothing changes but that it is deleted, too": {func(*testEnv) {}, "-" + name("src", "secret-admin"), true},
	} {
		t.Run(what, func(t *testing.T) {
			b := newTestEnv(t)
			b.StartReflector()
			client := b.client(b.serve())
			b.secret()
			b.do("boss>secret-admin src=boss{eve,bob}")
			b.becomes("src:secret-admin{eve,bob}")
			b.reads("eve", true)
			b.strip(name("src", "secret-admin"), held)
			c.before(b)
			b.do(c.change)
			b.reads("eve", c.eve)
			if c.eve {
				b.condition("boss>secret-admin", "Synced", "Pending")
				testenv.Eventually(t, soon, func() error { return b.drifts(client) })
			}
			b.AwaitNoCalls()
			b.patch(name("src", "secret-admin"), unheld)
			b.reads("eve", c.eve)
			testenv.Eventually(t, soon, b.consistent)
			b.holds(client, "secret-admin", c.eve)
		})
	}
}

// TestSubjectsAreRemovedBeforeDelayedDeletion watches every state of a binding with a finalizer.
func TestSubjectsAreRemovedBeforeDelayedDeletion(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.do("a>b B=a{x}")
	b.becomes("B:b{x}")
	ours := name("B", "b")
	b.patch(ours, held)
	b.AwaitNoCalls()
	states, err := b.typed.RbacV1().RoleBindings(b.namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: b.get(ours).ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer states.Stop()
	b.do("-a>b")
	for e := range states.ResultChan() {
		if is, ok := e.Object.(*rbacv1.RoleBinding); ok && is.Name == ours && is.DeletionTimestamp != nil {
			if len(is.Subjects) > 0 {
				t.Errorf("a binding in deletion grants to %v", is.Subjects)
			}
			return
		}
	}
	t.Error("the binding was not deleted")
}

// TestBlockedStatusesDoNotDelayRevocation blocks all status writes until a subject has lost its role. As many as
// possible are then in progress.
func TestBlockedStatusesDoNotDelayRevocation(t *testing.T) {
	const rules = 200
	b := newTestEnv(t)
	b.StartReflector()
	b.do("a>b B=a{x,y}")
	for i := range rules {
		b.do(fmt.Sprintf("c%d>d%d", i, i))
	}
	revoked := make(chan struct{})
	var waiting atomic.Int32
	b.Kube.FailBefore(func(ctx context.Context, op string) error {
		if !strings.HasSuffix(op, "/status") {
			return nil
		}
		waiting.Add(1)
		select {
		case <-revoked:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	b.serve()
	b.generates("B:b{x,y}")
	testenv.Eventually(t, soon, func() error {
		if waiting.Load() < 2 {
			return errors.New("no statuses are being written")
		}
		return nil
	})
	b.do("B=a{x}")
	b.generates("B:b{x}")
	if n := waiting.Load(); n > rules/4 {
		t.Errorf("%d statuses were let through before", n)
	}
	close(revoked)
	b.becomes("B:b{x}")
}

// drifts returns an error unless the answers report the binding that is being deleted.
func (b *testEnv) drifts(client inferencev1connect.InferenceServiceClient) error {
	drift, err := client.CheckDrift(b.T.Context(), &inferencev1.CheckDriftRequest{Namespace: b.namespace})
	if err != nil {
		return err
	}
	sync, err := client.GetSyncStatus(b.T.Context(), &inferencev1.GetSyncStatusRequest{Namespace: b.namespace})
	if err == nil && (drift.GetInStep() || sync.GetNamespaces()[0].GetPending() != 1) {
		err = errors.New("it is told to be in step")
	}
	return err
}

func TestForgedReservedBindingDoesNotGrant(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	client := b.client(b.serve())
	b.secret()
	b.do("boss>secret-admin ir-x-y-abcdefgh234567ab=boss{eve} ir-x-z-abcdefgh234567ab=secret-admin{eve} " + name("src", "secret-admin") + "=other{eve} src=boss{bob}")
	b.condition("boss>secret-admin", "Synced", "NameConflict")
	b.reads("eve", false)
	b.do("-" + name("src", "secret-admin"))
	b.reads("bob", true)
	b.holds(client, "secret-admin", false)
}
