//go:build integration

package webhook_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/webhook"
)

const review = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"a","uid":"alice","resourceAttributes":` +
	`{"verb":"get","group":"resourcemanager.miloapis.com","resource":"projects","name":"web"}}}`

// subjectRequest returns the status and the answer of the authorizer about alice and the project web.
func subjectRequest(t *testing.T, address string) (code int, answer string) {
	t.Helper()
	return put(t, address, review)
}

// put sends a review to the authorizer and returns the status and the answer.
func put(t *testing.T, address, of string) (code int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/core/v1alpha/webhook", strings.NewReader(of))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

// readiness returns the status of the readiness endpoint.
func readiness(t *testing.T, url string) (code int, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/readyz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// TestStaleIndexFailsReviews verifies that an unknown state gives no status 200, which the API
// server would cache. No such answer may allow access after a revocation.
func TestStaleIndexFailsReviews(t *testing.T) {
	listener := testenv.ListenLoopback(t)
	b := newBedWith(t, func(c *webhook.Config) { c.MaxStaleness, c.Authorizer.Listener = 5*time.Second, listener })
	until := func(code int, want string) {
		t.Helper()
		testenv.Eventually(t, soon, func() error {
			if got, answer := subjectRequest(t, listener.Addr().String()); got != code || !strings.Contains(answer, want) {
				return fmt.Errorf("got %d %s, want %d %s", got, answer, code, want)
			}
			if is, err := readiness(t, b.running.URL); err != nil || is != code {
				return fmt.Errorf("readiness: got %d, want %d like the answers: %w", is, code, err)
			}
			return nil
		})
	}
	until(http.StatusServiceUnavailable, "not known now")
	reflector := b.StartReflector()
	b.protect()
	web := b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	until(http.StatusOK, "missing permission")
	b.bind("old", "Project", "web", web, subjectFromMessage("User", "alice", alice))
	until(http.StatusOK, `"allowed":true`)
	release := sync.OnceFunc(reflector.Pause())
	defer release()
	until(http.StatusServiceUnavailable, "not known now")
	b.remove(kinds.PolicyBindings(), "old")
	if code, answer := subjectRequest(t, listener.Addr().String()); code != http.StatusServiceUnavailable {
		t.Errorf("after an unpublished revocation: got %d %s", code, answer)
	}
	release()
	until(http.StatusOK, "missing permission")
	b.NATS.Stop()
	until(http.StatusServiceUnavailable, "not known now")
	b.NATS.Start(t)
	until(http.StatusOK, "missing permission")
}

// TestCustomAccountNamesAreMatched uses an authenticator that names accounts as Milo does.
func TestCustomAccountNamesAreMatched(t *testing.T) {
	listener := testenv.ListenLoopback(t)
	b := newBedWith(t, func(c *webhook.Config) { c.AccountNames, c.Authorizer.Listener = `sa-.+@datum\.default`, listener })
	b.StartReflector()
	b.protect()
	web := b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	bot := b.create(kinds.IAMServiceAccounts(), "bot", map[string]any{"state": "Active"})
	b.bind("bot", "Project", "web", web, subjectFromMessage("ServiceAccount", "bot", bot))
	named := func(user, uid string) string {
		return strings.NewReplacer(`"user":"a"`, `"user":"`+user+`"`, `"alice"`, `"`+uid+`"`).Replace(review)
	}
	testenv.Eventually(t, soon, func() error {
		if code, answer := put(t, listener.Addr().String(), named("sa-one@datum.default", bot)); code != http.StatusOK || !strings.Contains(answer, `"allowed":true`) {
			return fmt.Errorf("got %d %s", code, answer)
		}
		return nil
	})
	for user, uid := range map[string]string{"alice@example.com": bot, "sa-one@datum.default": "bot", "x/sa-one@datum.default.example": bot} {
		if code, answer := put(t, listener.Addr().String(), named(user, uid)); code != http.StatusOK || !strings.Contains(answer, "missing permission") {
			t.Errorf("%s: got %d %s", user, code, answer)
		}
	}
}
