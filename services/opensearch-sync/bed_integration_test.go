//go:build integration

package opensearchsync_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
)

const (
	namespace = "default"
	cluster   = "search"
	soon      = 60 * time.Second
	// first and second are passwords that OpenSearch accepts as strong.
	first, second = "cobalt-Ferret-91-orbit", "umbra-Lantern-37-quartz"
)

// testEnv runs opensearch-sync with all servers that it needs, including an OpenSearch.
type testEnv struct {
	*testenv.Env
	search *testenv.OpenSearchServer
	core   kubernetes.Interface
	// log holds the complete log of the service.
	log testenv.LogBuffer
}

func newTestEnv(t testing.TB) *testEnv {
	t.Helper()
	b := &testEnv{Env: testenv.NewEnv(t), search: testenv.StartOpenSearch(t)}
	b.core = b.Typed
	b.Kube.GrantServiceRight(t, topology.OpensearchSync, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	certificate, key := b.search.AdminCertificate()
	b.secret("connection", map[string]string{
		"url": b.search.URL(), "ca.crt": string(b.search.CA()), "tls.crt": string(certificate), "tls.key": string(key),
	})
	b.secret("passwords", map[string]string{"anna": first, "ben": first + "\n"})
	return b
}

// Reflector starts a watcher that also follows Secrets, until the test ends.
func (b *testEnv) Reflector() *testenv.Reflector {
	b.T.Helper()
	return b.Env.StartReflector(kinds.Secrets().InNamespace(namespace))
}

// serve starts opensearch-sync. It stops at the latest when the test ends.
func (b *testEnv) serve() *testenv.RunningService {
	b.T.Helper()
	return b.serveWith(func(*opensearchsync.Config) {})
}

// shortenWaits shortens the waits of the service.
func shortenWaits(c *opensearchsync.Config) {
	testenv.ShortenWaits(&c.Config)
	c.BatchTime = time.Second
}

func (b *testEnv) serveWith(change func(*opensearchsync.Config)) *testenv.RunningService {
	b.T.Helper()
	cfg := opensearchsync.Defaults()
	cfg.Local, cfg.SecretInterval = true, time.Hour // The informer follows all Secrets of the tests.
	listener := b.ConfigureService(topology.OpensearchSync, &cfg.Config.Config)
	cfg.Embed.Log = b.log.Logger(b.T, slog.LevelDebug)
	change(&cfg)
	return b.Serve(listener, func(ctx context.Context) error { return opensearchsync.Run(ctx, cfg) })
}

// secret creates or updates a Secret until the test ends. Like kubectl apply, it repeats the values in an annotation.
func (b *testEnv) secret(name string, values map[string]string) {
	b.T.Helper()
	api := b.core.CoreV1().Secrets(namespace)
	applied := map[string]string{corev1.LastAppliedConfigAnnotation: fmt.Sprint(values)}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: applied}, StringData: values}
	_, err := api.Update(b.T.Context(), s, metav1.UpdateOptions{})
	if err != nil {
		_, err = api.Create(b.T.Context(), s, metav1.CreateOptions{})
		b.T.Cleanup(func() { _ = api.Delete(context.WithoutCancel(b.T.Context()), name, metav1.DeleteOptions{}) })
	}
	if err != nil {
		b.T.Fatal(err)
	}
}

// connect declares the cluster.
func (b *testEnv) connect() {
	b.T.Helper()
	b.connectAs(kinds.OpenSearchClusters())
}

func (b *testEnv) connectAs(kind kinds.Kind) {
	b.T.Helper()
	b.put(kind, cluster, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"entail.dev/connection-secret": "connection"}}})
}

// put creates or changes an object.
func (b *testEnv) put(kind kinds.Kind, name string, content map[string]any) {
	b.T.Helper()
	if spec, ok := content["spec"].(map[string]any); ok && kind.Kind != kinds.OpenSearchClusters().Kind {
		if spec["opensearchCluster"] == nil {
			spec["opensearchCluster"] = map[string]any{"name": cluster}
		}
	}
	if _, err := b.Kube.ApplyFields(b.T, kind.InNamespace(namespace), name, content); err != nil {
		b.T.Fatal(err)
	}
}

func spec(fields map[string]any) map[string]any { return map[string]any{"spec": fields} }

func (b *testEnv) user(name string) {
	b.put(kinds.OpenSearchUsers(), name, spec(map[string]any{"passwordFrom": map[string]any{"name": "passwords", "key": name}}))
}

func (b *testEnv) role(name string) {
	b.put(kinds.OpenSearchRoles(), name, spec(map[string]any{"clusterPermissions": []any{"cluster_monitor"}}))
}

func (b *testEnv) bind(name, role string, users ...any) {
	b.put(kinds.OpenSearchBindings(), name, spec(map[string]any{"roles": []any{role}, "users": users}))
}

// remove deletes objects, and waits until they are gone.
func (b *testEnv) remove(kind kinds.Kind, names ...string) {
	b.T.Helper()
	for _, name := range names {
		b.Delete(kind.InNamespace(namespace), name)
	}
	for _, name := range names {
		b.AwaitGone(kind.InNamespace(namespace), name)
	}
}

// objectWithCommonStatus decodes name and common status of any object.
type objectWithCommonStatus struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            opensearchv1.Common `json:"status"`
}

// state waits until an object's status has this state and a reason that contains the text.
func (b *testEnv) state(kind kinds.Kind, name, state, text string) {
	b.T.Helper()
	testenv.AwaitObject(b.Env, kind.InNamespace(namespace), name, func(o *objectWithCommonStatus) error {
		if got := o.Status; string(got.State) != state || !strings.Contains(got.Reason, text) || got.ObservedGeneration != o.Generation {
			return fmt.Errorf("%s is %s: %q, want %s: %q", name, got.State, got.Reason, state, text)
		}
		return nil
	})
}

// mapped returns the users of a role's mapping in OpenSearch, or nil.
func (b *testEnv) mapped(role string) []string {
	status, data := b.search.RequestAsAdmin(b.T, http.MethodGet, "/_plugins/_security/api/rolesmapping/"+role, nil)
	if status != http.StatusOK {
		return nil
	}
	var answer map[string]struct {
		Users []string `json:"users"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		b.T.Fatal(err)
	}
	return answer[role].Users
}

// write writes to OpenSearch like another client. It retries while the service writes the same document.
func (b *testEnv) write(path string, body any) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		status, answer := b.search.RequestAsAdmin(b.T, http.MethodPut, "/_plugins/_security/api/"+path, body)
		switch {
		case status == http.StatusConflict:
			return fmt.Errorf("%s: %d %s", path, status, answer)
		case status/100 != 2:
			b.T.Fatalf("%s: %d %s", path, status, answer)
		}
		return nil
	})
}

// login waits until a login returns the wanted HTTP status.
func (b *testEnv) login(user, password string, want int) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		if status, answer := b.search.TryLogin(b.T, user, password); status != want {
			return fmt.Errorf("%s logs in: %d %s", user, status, answer)
		}
		return nil
	})
}

// secretLabel edits a label of a Secret, but no value.
func (b *testEnv) secretLabel(name string) {
	b.T.Helper()
	patch := []byte(`{"metadata":{"labels":{"edited":"yes"}}}`)
	if _, err := b.core.CoreV1().Secrets(namespace).Patch(b.T.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		b.T.Fatal(err)
	}
}

// attribute waits until a user has an attribute with this value.
func (b *testEnv) attribute(user, name, want string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		status, data := b.search.RequestAsAdmin(b.T, http.MethodGet, "/_plugins/_security/api/internalusers/"+user, nil)
		var answer map[string]struct {
			Attributes map[string]string `json:"attributes"`
		}
		if err := json.Unmarshal(data, &answer); err != nil || answer[user].Attributes[name] != want {
			return fmt.Errorf("%d %s: %w", status, data, err)
		}
		return nil
	})
}

// authinfo is the path at which every authenticated user can read its own identity.
const authinfo = "/_plugins/_security/authinfo"

// openSearchUser is a user that logs in with a password, through one connection.
type openSearchUser struct {
	name, server string
	http         *http.Client
}

func (b *testEnv) person(name string) openSearchUser {
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(b.search.CA())
	return openSearchUser{name, b.search.URL(), &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}}}}
}

// gets returns an error unless the answer has this HTTP status.
func (p openSearchUser) gets(ctx context.Context, status int, password, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.server+path, http.NoBody)
	if err != nil {
		return err
	}
	request.SetBasicAuth(p.name, password)
	answer, err := p.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // HTTP then reuses the connection.
	if answer.StatusCode != status {
		return fmt.Errorf("%s gets %d, want %d", p.name, answer.StatusCode, status)
	}
	return nil
}
