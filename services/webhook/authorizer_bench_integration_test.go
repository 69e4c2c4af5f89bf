//go:build integration

package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/webhook"
)

const (
	// lasting is how long each of what is compared runs.
	lasting = 3 * time.Second
	// connections are those of who asks all the time.
	connections = 8
	// offered is the load, in requests a second, beside which revocations are looked for.
	offered = 5000
	// revocations are how many there are.
	revocations = 60
)

// secured has an authorizer show a certificate, and gives clients of it that speak a protocol.
func secured(b *testing.B, c *webhook.Config) func(http2 bool) *http.Client {
	b.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{Host: "127.0.0.1"})
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	c.Authorizer.Certificate, c.Authorizer.Key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, data := range map[string][]byte{c.Authorizer.Certificate: chain, c.Authorizer.Key: key} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(chain)
	return func(http2 bool) *http.Client {
		transport := &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}, ForceAttemptHTTP2: http2, MaxIdleConnsPerHost: connections,
		}
		b.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
}

// ask wants an answer that says something.
func ask(ctx context.Context, client *http.Client, url, body, want string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || !strings.Contains(string(answer), want)) {
		err = fmt.Errorf("%d %s", response.StatusCode, answer)
	}
	return err
}

// BenchmarkReviews compares reviews over TLS, with 100,000 bindings, with a bare Check of OpenFGA: of the plainest model that
// says the same, one tuple from the user to the project.
func BenchmarkReviews(b *testing.B) {
	address, set := authorizerOf(b)
	var clients func(bool) *http.Client
	bed := &bed{Bed: testbed.NewBed(b), set: func(c *webhook.Config) { set(c); clients = secured(b, c) }}
	bed.publish(bindings)
	bed.beat()
	bed.serve()
	url, body := "https://"+address+"/core/v1alpha/webhook", strings.NewReplacer(`"alice"`, `"user-1"`, `"web"`, `"project-0"`).Replace(review)
	http1, http2 := clients(false), clients(true)
	testbed.Eventually(b, soon, func() error { return ask(b.Context(), http1, url, body, `"allowed":true`) })
	check := bed.bare()
	for b.Loop() {
		bare, bareTimes := closed(b, connections, check)
		one, oneTimes := closed(b, connections, func() error { return ask(b.Context(), http1, url, body, `"allowed":true`) })
		two, twoTimes := closed(b, connections, func() error { return ask(b.Context(), http2, url, body, `"allowed":true`) })
		ctx, stop := context.WithTimeout(b.Context(), lasting)
		half := open(ctx, b, int(two/2), func() error { return ask(b.Context(), http2, url, body, `"allowed":true`) })()
		stop()
		b.ReportMetric(bare, "checks/s")
		b.ReportMetric(one, "http1/s")
		b.ReportMetric(two, "http2/s")
		b.ReportMetric(one/bare, "times-http1")
		b.ReportMetric(two/bare, "times-http2")
		bareTimes.report(b, "check")
		oneTimes.report(b, "http1")
		twoTimes.report(b, "http2")
		half.report(b, "half-load")
	}
}

// bare makes a store in which user-1 may get a project, and asks it whether.
func (b *bed) bare() func() error {
	b.T.Helper()
	client := b.OpenFGA.Client(b.T)
	model := &openfgav1.AuthorizationModel{SchemaVersion: "1.1", TypeDefinitions: []*openfgav1.TypeDefinition{{Type: "user"}, {
		Type:      "project",
		Relations: map[string]*openfgav1.Userset{"get": {Userset: &openfgav1.Userset_This{This: &openfgav1.DirectUserset{}}}},
		Metadata: &openfgav1.Metadata{Relations: map[string]*openfgav1.RelationMetadata{
			"get": {DirectlyRelatedUserTypes: []*openfgav1.RelationReference{{Type: "user"}}},
		}},
	}}}
	store, err := client.CreateStore(b.T.Context(), "bare")
	if err != nil {
		b.T.Fatal(err)
	}
	id, err := client.WriteModel(b.T.Context(), store, model)
	if err == nil {
		err = client.Write(b.T.Context(), store, id, []*openfgav1.TupleKey{{User: "user:user-1", Relation: "get", Object: "project:project-0"}}, nil)
	}
	if err != nil {
		b.T.Fatal(err)
	}
	return func() error {
		answer, err := client.Check(b.T.Context(), &openfgav1.CheckRequest{
			StoreId: store, AuthorizationModelId: id,
			TupleKey: &openfgav1.CheckRequestTupleKey{User: "user:user-1", Relation: "get", Object: "project:project-0"},
		})
		if err == nil && !answer.GetAllowed() {
			err = fmt.Errorf("refused")
		}
		return err
	}
}

// BenchmarkRevocation is the time from the answer to who takes a binding away until whom it let in is refused, while others ask.
func BenchmarkRevocation(b *testing.B) {
	address, set := authorizerOf(b)
	bed := newBedWith(b, set)
	bed.Reflector()
	bed.protect()
	web := bed.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	alice := bed.create(kinds.Users(), "alice", map[string]any{"email": "alice@example.com"})
	bed.awaitReady()
	url := "http://" + address + "/core/v1alpha/webhook"
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	until := func(want string) time.Duration {
		began := time.Now()
		for ask(b.Context(), client, url, review, want) != nil {
			if time.Since(began) > soon {
				b.Fatalf("there is no %s", want)
			}
		}
		return time.Since(began)
	}
	until("missing permission")
	for b.Loop() {
		ctx, stop := context.WithCancel(b.Context())
		wait := open(ctx, b, offered, func() error { return ask(b.Context(), client, url, reviewOf("bob"), "missing permission") })
		revoked, granted := &histogram{}, &histogram{}
		for i := range revocations {
			name := fmt.Sprint("short-", i)
			bed.bind(name, "Project", "web", web, subject("User", "alice", alice))
			granted.add(until(`"allowed":true`))
			bed.remove(kinds.PolicyBindings(), name)
			revoked.add(until("missing permission"))
		}
		stop()
		wait().report(b, "review")
		granted.report(b, "grant")
		revoked.report(b, "revocation")
	}
}

// BenchmarkThroughTheAPIServer is a request to an API server, of somebody whom RBAC lets in and of somebody about whom it asks here,
// each time. Both ask for an object that is not there.
func BenchmarkThroughTheAPIServer(b *testing.B) {
	address, set := authorizerOf(b)
	var ca []byte
	bed := newBedWith(b, func(c *webhook.Config) {
		set(c)
		c.Subject = webhook.ByUIDOrName
		_ = secured(b, c)
		var err error
		if ca, err = os.ReadFile(c.Authorizer.Certificate); err != nil {
			b.Fatal(err)
		}
	})
	bed.Reflector()
	bed.create(kinds.ProtectedResources(), "configmap", map[string]any{
		"serviceRef": map[string]any{"name": "core.miloapis.com"}, "kind": "ConfigMap", "singular": "configmap", "plural": "configmaps",
		"permissions": []any{"get"},
	})
	bed.create(kinds.IAMRoles(), "getter", map[string]any{"launchStage": "Beta", "includedPermissions": []any{"core.miloapis.com/configmaps.get"}})
	alice := bed.create(kinds.Users(), "alice", map[string]any{"email": "alice@example.com"})
	bed.create(kinds.PolicyBindings(), "all", map[string]any{
		"roleRef": map[string]any{"name": "getter"}, "subjects": []any{subject("User", "alice", alice)},
		"resourceSelector": map[string]any{"resourceKind": map[string]any{"apiGroup": "core.miloapis.com", "kind": "ConfigMap"}},
	})
	server := apiServer(b, "https://"+address+"/core/v1alpha/webhook", ca, "alice", "carol")
	letIn(b, server, "carol")
	request := func(user string) func() error {
		call := caller(b, server, user)
		return func() error {
			if code, err := call("/api/v1/namespaces/default/configmaps/none"); err != nil || code != http.StatusNotFound {
				return fmt.Errorf("%s is answered %d, %w", user, code, err)
			}
			return nil
		}
	}
	byRBAC, asked := request("carol"), request("alice")
	testbed.Eventually(b, soon, byRBAC)
	testbed.Eventually(b, soon, asked)
	for b.Loop() {
		for _, askers := range []int{1, connections} {
			_, rbac := closed(b, askers, byRBAC)
			_, webhook := closed(b, askers, asked)
			rbac.report(b, fmt.Sprint("rbac-", askers))
			webhook.report(b, fmt.Sprint("asked-", askers))
		}
	}
}

// letIn has the API server's own RBAC let a user read all ConfigMaps.
func letIn(b *testing.B, server *devserver.KubeLocal, user string) {
	b.Helper()
	cfg, err := server.Config()
	if err != nil {
		b.Fatal(err)
	}
	api := kubernetes.NewForConfigOrDie(cfg).RbacV1()
	meta := metav1.ObjectMeta{Name: user}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := api.ClusterRoles().Create(b.Context(), role, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	if _, err := api.ClusterRoleBindings().Create(b.Context(), binding, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
}
