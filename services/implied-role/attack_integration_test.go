//go:build integration

package impliedrole_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/validating"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// configuration returns the registered webhooks.
func (b *testEnv) configuration() *admissionregistrationv1.ValidatingWebhookConfiguration {
	b.T.Helper()
	c, err := b.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(b.T.Context(), validating.Name, metav1.GetOptions{})
	if err != nil {
		b.T.Fatal(err)
	}
	return c
}

// sendReview sends a review of a rule as an administrator, and returns the HTTP status of the answer.
func (b *testEnv) sendReview(to, namespace string) int {
	b.T.Helper()
	rule := fmt.Sprintf(`{"metadata":{"name":"x","namespace":%q},"spec":{"inference_rule":{"parent_role":"p","child_role":"q"}}}`, namespace)
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u", Namespace: namespace, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(rule)},
			UserInfo: authenticationv1.UserInfo{Username: "system:admin", Groups: []string{"system:masters"}},
		},
	})
	if err != nil {
		b.T.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := client.Post(to, "application/json", bytes.NewReader(body))
	if err != nil {
		b.T.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// TestWebhookRefusesForgedReviews sends reviews to paths that are derived from the names of the webhooks. Only the
// registered paths, which the API server holds, are served.
func TestWebhookRefusesForgedReviews(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.guarded()
	b.CreateNamespace("victim")
	hook := b.configuration().Webhooks[0]
	registered, err := url.Parse(*hook.ClientConfig.URL)
	if err != nil {
		t.Fatal(err)
	}
	to := "https://" + registered.Host
	for _, path := range []string{"/" + hook.Name, "//" + hook.Name, strings.ToUpper(registered.Path), registered.Path + "/x"} {
		if code := b.sendReview(to+path, "victim"); code != http.StatusNotFound {
			t.Errorf("%s answers %d", path, code)
		}
	}
	covered := func() string {
		return fmt.Sprint(b.configuration().Webhooks[1].NamespaceSelector.MatchExpressions[0].Values)
	}
	if got := covered(); got != "[team]" {
		t.Errorf("got covered namespaces %s", got)
	}
	if code := b.sendReview(to+registered.Path, "victim"); code != http.StatusOK || covered() != "[team victim]" {
		t.Errorf("review at the registered path: got %d, covered namespaces %s", code, covered())
	}
	expectRefusal(t, b.hands(mallory).binds("x", "dev", mallory), "Role dev implies Role secret-admin")
}

// TestConcurrentBindingsShareOneRead makes many bindings in a namespace whose rules are slow to read. It verifies that
// another namespace is not delayed.
func TestConcurrentBindingsShareOneRead(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.guarded()
	other := b.in("other")
	other.roles("p", "q")
	other.role(mallory,
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, ResourceNames: []string{"p", "q"}, Verbs: []string{"bind"}},
	)
	other.do(mallory + "=" + mallory + "{" + mallory + "} p>q")
	testenv.Eventually(t, soon, func() error { return other.hands(mallory).binds("x", "p", mallory) })
	b.AwaitNoCalls()
	var at, worst atomic.Int32
	release := make(chan struct{})
	b.Kube.FailBefore(func(ctx context.Context, op string) error {
		if !strings.HasPrefix(op, "GET") || !strings.HasSuffix(op, "/namespaces/"+b.namespace+"/impliedroles") {
			return nil
		}
		worst.Store(max(worst.Load(), at.Add(1)))
		defer at.Add(-1)
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	var storm sync.WaitGroup
	for range 100 {
		storm.Go(func() {
			_, _ = b.hands(mallory).typed.RbacV1().RoleBindings(b.namespace).Create(t.Context(), binding("x", "free", mallory), metav1.CreateOptions{DryRun: dry()})
		})
	}
	testenv.Eventually(t, soon, func() error {
		if at.Load() == 0 {
			return errors.New("nobody asks")
		}
		return nil
	})
	for range 10 {
		if _, err := other.hands(mallory).typed.RbacV1().RoleBindings("other").Create(t.Context(), binding("x", "p", mallory), metav1.CreateOptions{DryRun: dry()}); err != nil {
			t.Error(err)
		}
	}
	close(release)
	storm.Wait()
	if worst.Load() > 1 {
		t.Errorf("got %d parallel reads of the rules", worst.Load())
	}
}

// TestWebhookDoesNotListTooManyRules makes more rules than the limit. They count only if the informer holds them.
func TestWebhookDoesNotListTooManyRules(t *testing.T) {
	b := newTestEnv(t)
	m := b.StartReflector()
	b.guarded(func(c *impliedrole.Config) { c.Policy.MaxRules = 25 })
	for i := range 28 {
		b.rule(fmt.Sprintf("filler-%d", i), role(fmt.Sprintf("filler-%d", i)), role("free"), false)
	}
	h := b.hands(mallory)
	testenv.Eventually(t, soon, func() error { return h.binds("x", "free", mallory) }) // Allowed as soon as the informer holds all rules.
	release := m.Pause()
	testenv.Eventually(t, soon, func() error {
		if err := h.binds("x", "free", mallory); err == nil || !strings.Contains(err.Error(), "30 rules, more than the 25") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	release()
	testenv.Eventually(t, soon, func() error { return h.binds("x", "free", mallory) })
}

// TestPreexistingReservedNamesDoNotGrant makes RoleBindings with generated names before the service has ever run.
// Their roles or sources differ from those in the name.
func TestPreexistingReservedNamesDoNotGrant(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.roles("lead", "dev", "free")
	b.role(mallory,
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, ResourceNames: []string{"dev", "free"}, Verbs: []string{"bind"}},
	)
	b.do(mallory + "=" + mallory + "{" + mallory + "}")
	alike := binding(name("one", "dev"), "dev", mallory)
	alike.Labels, alike.Annotations = map[string]string{infer.ManagedByLabel: infer.ManagedBy}, map[string]string{infer.SourceAnnotation: "one"}
	alike.Finalizers = []string{"example.com/held"}
	for _, taken := range []*rbacv1.RoleBinding{alike, binding(name("two", "dev"), "free", mallory), binding(name("nobody", "dev"), "dev", mallory)} {
		testenv.Eventually(t, soon, func() error {
			_, err := b.hands(mallory).typed.RbacV1().RoleBindings(b.namespace).Create(t.Context(), taken, metav1.CreateOptions{})
			return err
		})
	}
	b.serveGuard()
	b.do("lead>dev one=lead{alice} two=lead{bob}")
	if c := b.condition("lead>dev", "Synced", "NameConflict"); !strings.Contains(c.Message, name("two", "dev")) {
		t.Errorf("got message %q", c.Message)
	}
	b.reported(name("two", "dev"), "NameConflict")
	for _, taken := range []string{name("two", "dev"), name("nobody", "dev")} {
		b.reported(taken, "ReservedName")
	}
	b.generates(":dev{} :free{} one:dev{alice}")
	b.do("-one")
	b.generates(":dev{} :free{} one:dev{}")
	b.patch(name("one", "dev"), unheld)
	b.generates(":dev{} :free{}")
	b.do("-" + name("two", "dev"))
	b.generates(":dev{} two:dev{bob}")
}

// TestBindByUserOfManyRolesNeedsFewRequests makes a binding as a user that holds the implied permissions by one of 200
// roles.
func TestBindByUserOfManyRolesNeedsFewRequests(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.guarded()
	secrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}
	names := []string{"lead"}
	for i := range 200 {
		rules := []rbacv1.PolicyRule{secrets, {APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"create"}}}
		name := fmt.Sprintf("held-%d", i)
		b.role(name, rules[i%2])
		b.do(fmt.Sprintf("%s=%s{nina}", name, name))
		names = append(names, name)
	}
	b.role("binder", rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, ResourceNames: names[:1], Verbs: []string{"bind"}})
	b.do("binder=binder{nina}")
	b.AwaitNoCalls()
	reads := func() (n int) {
		for op, calls := range b.Kube.CallsByOp() {
			if strings.HasPrefix(op, "GET /apis/"+rbacv1.GroupName) && strings.Contains(op, "roles") {
				n += calls
			}
		}
		return n
	}
	testenv.Eventually(t, soon, func() error { return b.hands("nina").binds("x", "free", "nina") })
	before := reads()
	expectRefusal(t, b.hands("nina").binds("x", "lead", "carl"))
	if n := reads() - before; n > 5 {
		t.Errorf("got %d reads of roles", n)
	}
}
