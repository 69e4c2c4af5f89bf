//go:build integration

package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/webhook"
)

// asksAfterRBAC is the configuration of an API server that calls the authorizer after RBAC.
const asksAfterRBAC = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: RBAC
  name: rbac
- type: Webhook
  name: entail
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    authorizedTTL: 5m
    unauthorizedTTL: 30s
    cacheAuthorizedRequests: false
    cacheUnauthorizedRequests: false
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
    matchConditions:
    - expression: "!('system:masters' in request.groups) && !request.user.startsWith('system:')"
`

// apiServer starts an API server that sends requests which RBAC does not allow to a URL. The users get certificates.
func apiServer(t testing.TB, url string, ca []byte, users ...string) *devserver.KubeLocal {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, config := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "authorization.yaml")
	access, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"entail": {Server: url, CertificateAuthorityData: ca}},
		Contexts: map[string]*clientcmdapi.Context{"entail": {Cluster: "entail"}}, CurrentContext: "entail",
	})
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{kubeconfig: access, config: fmt.Appendf(nil, asksAfterRBAC, kubeconfig)} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary, err := devserver.FindKubeLocal()
	if err != nil {
		t.Fatal(err)
	}
	server, err := devserver.StartKubeLocal(t.Context(), devserver.KubeLocalConfig{
		Binary: binary, Dir: filepath.Join(dir, "kube"), Users: users, AuthorizationConfig: config, UnsafeNoFsync: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// caller returns a function that sends requests as a user of an API server.
func caller(t testing.TB, server *devserver.KubeLocal, user string) func(path string) (code int, err error) {
	t.Helper()
	cfg, err := server.UserConfig(user)
	if err != nil {
		t.Fatal(err)
	}
	return callerWith(t, cfg)
}

// callerWith returns a function that sends requests with the given access.
func callerWith(t testing.TB, cfg *rest.Config) func(path string) (code int, err error) {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return func(path string) (code int, err error) {
		r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, cfg.Host+path, http.NoBody)
		if err != nil {
			return 0, err
		}
		answer, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
}

// configMaps registers ConfigMaps as children of projects, and makes a role that lists them.
func (b *bed) configMaps() {
	b.T.Helper()
	b.create(kinds.ProtectedResources(), "configmap", map[string]any{
		"serviceRef": map[string]any{"name": "core.miloapis.com"}, "kind": "ConfigMap", "singular": "configmap", "plural": "configmaps",
		"permissions": []any{"get", "list"}, "parentResources": []any{map[string]any{"apiGroup": projects, "kind": "Project"}},
	})
	b.create(kinds.IAMRoles(), "lister", map[string]any{"launchStage": "Beta", "includedPermissions": []any{"core.miloapis.com/configmaps.list"}})
}

// TestProjectEndpointRequiresRoleOnProject verifies that the endpoint of a project allows only subjects with a role
// on that project. A new project of the same name does not count.
func TestProjectEndpointRequiresRoleOnProject(t *testing.T) {
	address, set := authorizerOf(t)
	b := newBedWith(t, func(c *webhook.Config) { set(c); c.Subject = webhook.ByUIDOrName })
	b.StartReflector()
	b.protect()
	b.configMaps()
	server := apiServer(t, "http://"+address+"/project/v1alpha/projects/web/webhook", nil, "alice", "mallory")
	alice, mallory := caller(t, server, "alice"), caller(t, server, "mallory")
	const list, one = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/configmaps/none"
	answers := func(call func(string) (int, error), path string, want int) {
		t.Helper()
		testenv.Eventually(t, soon, func() error {
			if code, err := call(path); err != nil || code != want {
				return fmt.Errorf("%s: got status %d, %w", path, code, err)
			}
			return nil
		})
	}
	web := b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	other := b.create(kinds.Projects(), "other", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	aliceIs := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	malloryIs := b.create(kinds.IAMUsers(), "mallory", map[string]any{"email": "mallory@example.com"})
	bind := func(name, project, uid string, subject map[string]any) {
		b.create(kinds.PolicyBindings(), name, map[string]any{
			"roleRef": map[string]any{"name": "lister"}, "subjects": []any{subject},
			"resourceSelector": map[string]any{"resourceRef": map[string]any{"apiGroup": projects, "kind": "Project", "name": project, "uid": uid}},
		})
	}
	bind("on-other", "other", other, subjectFromMessage("User", "mallory", malloryIs))
	bind("on-web", "web", web, subjectFromMessage("User", "alice", aliceIs))
	answers(alice, list, http.StatusOK)
	answers(alice, one, http.StatusForbidden)
	answers(mallory, list, http.StatusForbidden)
	b.remove(kinds.PolicyBindings(), "on-web")
	answers(alice, list, http.StatusForbidden)
	bind("on-web", "web", web, subjectFromMessage("User", "alice", aliceIs))
	answers(alice, list, http.StatusOK)
	b.Delete(kinds.Projects(), "web")
	answers(alice, list, http.StatusForbidden)
	b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	b.create(kinds.IAMUsers(), "later", map[string]any{"email": "later@example.com"})
	b.awaitReady() // The service now has the new project of that name.
	answers(alice, list, http.StatusForbidden)
}

// TestShadowModeDoesNotAllow verifies that shadow mode allows nothing, and counts the decisions
// that would allow access.
func TestShadowModeDoesNotAllow(t *testing.T) {
	address, set := authorizerOf(t)
	b := newBedWith(t, func(c *webhook.Config) { set(c); c.Subject, c.Authorizer.Shadow = webhook.ByUIDOrName, true })
	b.StartReflector()
	b.protect()
	b.configMaps()
	server := apiServer(t, "http://"+address+"/core/v1alpha/webhook", nil, "alice")
	alice := caller(t, server, "alice")
	aliceIs := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	b.create(kinds.PolicyBindings(), "all", map[string]any{
		"roleRef": map[string]any{"name": "lister"}, "subjects": []any{subjectFromMessage("User", "alice", aliceIs)},
		"resourceSelector": map[string]any{"resourceKind": map[string]any{"apiGroup": "core.miloapis.com", "kind": "ConfigMap"}},
	})
	testenv.Eventually(t, soon, func() error {
		code, err := alice("/api/v1/namespaces/default/configmaps")
		if err != nil || code != http.StatusForbidden {
			t.Errorf("alice: got status %d, %v", code, err)
		}
		if n := b.running.MetricValue(t, `authz_decisions_total{decision="allowed",scope="cluster"}`); n < 1 {
			return fmt.Errorf("%v decisions would let her in", n)
		}
		return nil
	})
}
