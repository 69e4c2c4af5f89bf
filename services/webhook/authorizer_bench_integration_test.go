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
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/webhook"
)

const (
	// lasting is the duration of each compared run.
	lasting = 3 * time.Second
	// connections is the number of clients that send requests all the time.
	connections = 8
	// offered is the load in requests per second during revocations.
	offered = 5000
	// revocations is the number of measured revocations.
	revocations = 60
)

// secured configures a certificate for the authorizer, and returns a function that makes clients for HTTP/1.1 or
// HTTP/2.
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

// ask sends a request and returns an error unless the answer contains the wanted text.
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

// BenchmarkReviews compares reviews over TLS with bare Checks of OpenFGA, with 100,000 bindings. Both answer the same
// questions from the model of IAM and the tuples of the same bindings. Neither OpenFGA nor webhook caches answers.
func BenchmarkReviews(b *testing.B) {
	address, set := authorizerOf(b)
	var clients func(bool) *http.Client
	bed := &bed{Env: testenv.NewEnv(b), set: func(c *webhook.Config) { set(c); clients = secured(b, c) }}
	bed.publish(bindings)
	bed.serve()
	url, all := "https://"+address+"/core/v1alpha/webhook", puzzles()
	reviewed := func(client *http.Client) func() error {
		return each(all, func(p puzzle) error { return ask(b.Context(), client, url, p.review(), p.answer()) })
	}
	http1, http2 := reviewed(clients(false)), reviewed(clients(true))
	testenv.Eventually(b, soon, http1)
	check := bed.bare(all)
	for b.Loop() {
		bare, bareTimes := closed(b, connections, check)
		one, oneTimes := closed(b, connections, http1)
		two, twoTimes := closed(b, connections, http2)
		ctx, stop := context.WithTimeout(b.Context(), lasting)
		half := open(ctx, b, int(two/2), http2)()
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

// puzzle is a question about the objects of [bed.publish], with its answer.
type puzzle struct {
	user, project string
	allowed       bool
}

// puzzles returns a thousand puzzles. Every other one is allowed.
func puzzles() []puzzle {
	all := make([]puzzle, 0, most)
	for i := range most {
		user := 1 + i*(bindings/perUser-most/perUser-1)/most
		one := most + (user-1)*perUser + i%perUser // A binding of that user.
		p := puzzle{fmt.Sprint("user-", user), fmt.Sprint("project-", one%most), i%2 == 0}
		if !p.allowed {
			p.project = fmt.Sprint("project-", (one+most/2)%most)
		}
		all = append(all, p)
	}
	return all
}

func (p puzzle) review() string {
	return strings.NewReplacer(`"alice"`, `"`+p.user+`"`, `"web"`, `"`+p.project+`"`).Replace(review)
}

func (p puzzle) answer() string {
	if p.allowed {
		return `"allowed":true`
	}
	return "missing permission"
}

// each returns a function that handles the next puzzle at each call. After the last it begins again.
func each(all []puzzle, do func(puzzle) error) func() error {
	var next atomic.Int64
	return func() error { return do(all[int(next.Add(1))%len(all)]) }
}

// BenchmarkRevocation measures the time from the deletion of a binding until its user is refused, under load.
func BenchmarkRevocation(b *testing.B) {
	address, set := authorizerOf(b)
	bed := newBedWith(b, set)
	bed.StartReflector()
	bed.protect()
	web := bed.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	alice := bed.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	bed.awaitReady()
	url := "http://" + address + "/core/v1alpha/webhook"
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	until := func(want string) time.Duration {
		began := time.Now()
		for ask(b.Context(), client, url, review, want) != nil {
			if time.Since(began) > soon {
				b.Fatalf("%s does not exist", want)
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
			bed.bind(name, "Project", "web", web, subjectFromMessage("User", "alice", alice))
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

// BenchmarkAPIServerRequest measures a request of a user that RBAC allows, and of one for which the API server calls
// the authorizer each time. Both request an object that does not exist.
func BenchmarkAPIServerRequest(b *testing.B) {
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
	bed.StartReflector()
	bed.create(kinds.ProtectedResources(), "configmap", map[string]any{
		"serviceRef": map[string]any{"name": "core.miloapis.com"}, "kind": "ConfigMap", "singular": "configmap", "plural": "configmaps",
		"permissions": []any{"get"},
	})
	bed.create(kinds.IAMRoles(), "getter", map[string]any{"launchStage": "Beta", "includedPermissions": []any{"core.miloapis.com/configmaps.get"}})
	alice := bed.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	bed.create(kinds.PolicyBindings(), "all", map[string]any{
		"roleRef": map[string]any{"name": "getter"}, "subjects": []any{subjectFromMessage("User", "alice", alice)},
		"resourceSelector": map[string]any{"resourceKind": map[string]any{"apiGroup": "core.miloapis.com", "kind": "ConfigMap"}},
	})
	server := apiServer(b, "https://"+address+"/core/v1alpha/webhook", ca, "alice", "carol")
	letIn(b, server, "carol")
	request := func(user string) func() error {
		call := caller(b, server, user)
		return func() error {
			if code, err := call("/api/v1/namespaces/default/configmaps/none"); err != nil || code != http.StatusNotFound {
				return fmt.Errorf("%s: got status %d, %w", user, code, err)
			}
			return nil
		}
	}
	byRBAC, asked := request("carol"), request("alice")
	testenv.Eventually(b, soon, byRBAC)
	testenv.Eventually(b, soon, asked)
	for b.Loop() {
		for _, askers := range []int{1, connections} {
			_, rbac := closed(b, askers, byRBAC)
			_, webhook := closed(b, askers, asked)
			rbac.report(b, fmt.Sprint("rbac-", askers))
			webhook.report(b, fmt.Sprint("asked-", askers))
		}
	}
}

// letIn lets RBAC of the API server allow a user to read all ConfigMaps.
func letIn(b *testing.B, server *devserver.KubeLocal, user string) {
	b.Helper()
	cfg, err := server.AdminConfig()
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
