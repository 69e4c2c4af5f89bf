//go:build integration

package opensearchsync_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	// many is the number of users, of roles and of bindings.
	many = 1000
	// few is the number of each for the measurement with one request per object.
	few = 100
	// creators bounds how many objects are created at the same time.
	creators  = 16
	benchSoon = 10 * time.Minute
)

// path returns a path of the security API.
func path(parts ...string) string { return "/_plugins/_security/api/" + strings.Join(parts, "/") }

// client is a plain client with the rights and the connection of the service.
type client struct {
	b    *testEnv
	http *http.Client
}

func (b *testEnv) client() client {
	b.T.Helper()
	certificate, err := tls.X509KeyPair(b.search.AdminCertificate())
	if err != nil {
		b.T.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(b.search.CA())
	return client{b, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: authorities}}}}
}

func (c client) do(method, path string, body any) []byte {
	c.b.T.Helper()
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			c.b.T.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(c.b.T.Context(), method, c.b.search.URL()+path, &content)
	if err != nil {
		c.b.T.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		c.b.T.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode/100 != 2 {
		c.b.T.Fatalf("%s %s: %d %s %v", method, path, answer.StatusCode, data, err)
	}
	return data
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patch changes entities of a kind, batch of them in each request.
func (c client) patch(kind string, batch int, all []operation) {
	c.b.T.Helper()
	for part := range slices.Chunk(all, batch) {
		c.do(http.MethodPatch, path(kind), part)
	}
}

// Contents of the entities that are written without Entail.
func bareUser(name string) map[string]any {
	return map[string]any{"password": first, "attributes": map[string]any{"k8s-uid": name, "entail-password": name}}
}

func bareRole() map[string]any {
	return map[string]any{"cluster_permissions": []string{"cluster_monitor"}}
}
func bareMapping(user string) map[string]any { return map[string]any{"users": []string{user}} }

// bare writes the same entities with the fewest requests that the server accepts, and removes them. It returns the time
// of the writes.
func (c client) bare() time.Duration {
	c.b.T.Helper()
	var roles, mappings []operation
	gone := map[string][]operation{}
	for i := range many {
		name := fmt.Sprint("bare-", i)
		roles = append(roles, operation{"add", "/" + name, bareRole()})
		mappings = append(mappings, operation{"add", "/" + name, bareMapping(name)})
		for _, kind := range []string{"rolesmapping", "roles", "internalusers"} {
			gone[kind] = append(gone[kind], operation{Op: "remove", Path: "/" + name})
		}
	}
	began := time.Now()
	for i := range many {
		name := fmt.Sprint("bare-", i)
		c.do(http.MethodPut, path("internalusers", name), bareUser(name))
	}
	c.patch("roles", 500, roles)
	c.patch("rolesmapping", 50, mappings)
	took := time.Since(began)
	for kind, operations := range gone {
		c.patch(kind, 50, operations)
	}
	return took
}

// oneByOne reads and writes few objects of each kind with one request each, like a controller without lists.
func (c client) oneByOne() time.Duration {
	c.b.T.Helper()
	began := time.Now()
	for i := range few {
		name := fmt.Sprint("o-", i)
		for kind, body := range map[string]any{"internalusers": bareUser(name), "roles": bareRole(), "rolesmapping": bareMapping(name)} {
			c.do(http.MethodGet, path(kind, name), nil)
			c.do(http.MethodPut, path(kind, name), body)
		}
	}
	return time.Since(began)
}

// listed counts the entities of the benchmark in OpenSearch.
func (c client) listed(kind string) (n int) {
	c.b.T.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(c.do(http.MethodGet, path(kind), nil), &all); err != nil {
		c.b.T.Fatal(err)
	}
	for name := range all {
		if strings.HasPrefix(name, "o-") {
			n++
		}
	}
	return n
}

// declareMany declares many users, roles and bindings, and waits until the stream has them.
func (b *testEnv) declareMany() {
	b.T.Helper()
	var group errgroup.Group
	group.SetLimit(creators)
	for i := range many {
		name := fmt.Sprint("o-", i)
		group.Go(func() error {
			b.put(kinds.OpenSearchUsers(), name, spec(map[string]any{"passwordFrom": map[string]any{"name": "passwords", "key": "anna"}}))
			b.role(name)
			b.bind(name, name, name)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.T.Fatal(err)
	}
	testenv.Eventually(b.T, benchSoon, func() error {
		stream, err := b.JS.Stream(b.T.Context(), topology.Changes)
		if err != nil {
			return err
		}
		info, err := stream.Info(b.T.Context(), jetstream.WithSubjectFilter(">"))
		if err != nil || len(info.State.Subjects) < 3*many {
			return fmt.Errorf("%d subjects on the bus, %w", len(info.State.Subjects), err)
		}
		return nil
	})
}

// awaitMade waits until OpenSearch has all entities.
func (c client) awaitMade() {
	c.b.T.Helper()
	for _, kind := range []string{"internalusers", "roles", "rolesmapping"} {
		testenv.Eventually(c.b.T, benchSoon, func() error {
			if n := c.listed(kind); n < many {
				return fmt.Errorf("%d %s", n, kind)
			}
			return nil
		})
	}
}

// awaitCreated waits until the status of every object reports success.
func (b *testEnv) awaitCreated() {
	b.T.Helper()
	for _, kind := range []kinds.Kind{kinds.OpenSearchUsers(), kinds.OpenSearchRoles(), kinds.OpenSearchBindings()} {
		testenv.Eventually(b.T, benchSoon, func() error {
			n := 0
			for _, o := range b.List(kind).Items {
				if state, _, _ := unstructured.NestedString(o.Object, "status", "state"); state == "CREATED" {
					n++
				}
			}
			if n < many {
				return fmt.Errorf("%d of kind %s", n, kind.Kind)
			}
			return nil
		})
	}
}

// BenchmarkSyncThousandObjects measures how long a thousand users, roles and bindings take from the stream to
// OpenSearch, and to their statuses. It compares this with the fewest possible requests. Then it compares a resync
// without changes with reading and writing each object by itself.
func BenchmarkSyncThousandObjects(b *testing.B) {
	bed := newTestEnv(b)
	bed.Reflector()
	bed.connect()
	bed.declareMany()
	c := bed.client()
	for b.Loop() {
		bare := c.bare()
		before := bed.search.Writes()
		began := time.Now()
		bed.serve()
		c.awaitMade()
		made := time.Since(began)
		bed.awaitCreated()
		created := time.Since(began)
		bed.AwaitNoCalls()
		b.ReportMetric(float64(bed.search.Writes()-before), "writes")
		b.ReportMetric(bare.Seconds(), "s/bare")
		b.ReportMetric(made.Seconds()/bare.Seconds(), "made/bare")
		b.ReportMetric(created.Seconds()/bare.Seconds(), "created/bare")

		bed.AwaitCaughtUp(topology.OpensearchSync)
		calls, writes := bed.search.CallsByOp(), bed.search.Writes()
		began = time.Now()
		bed.RequestResync(topology.OpensearchSync)
		// A run over mappings lists the roles, too.
		bed.awaitCalls(calls, map[string]int{"GET internalusers": 1, "GET roles": 2, "GET rolesmapping": 1})
		resync := time.Since(began)
		bed.AwaitNoCalls()
		b.ReportMetric(resync.Seconds(), "s/resync")
		b.ReportMetric(float64(total(bed.search.CallsByOp())-total(calls)), "calls/resync")
		b.ReportMetric(float64(bed.search.Writes()-writes), "writes/resync")
		b.ReportMetric(c.oneByOne().Seconds()*many/few/resync.Seconds(), "one-by-one/resync")
	}
}

// awaitCalls waits until each operation was called at least this many times more than before.
func (b *testEnv) awaitCalls(before, more map[string]int) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		now := b.search.CallsByOp()
		for op, n := range more {
			if got := now[op] - before[op]; got < n {
				return fmt.Errorf("%d of %q, want %d", got, op, n)
			}
		}
		return nil
	})
}

func total(calls map[string]int) (n int) {
	for _, of := range calls {
		n += of
	}
	return n
}

// BenchmarkChangeToEffective measures the time from a change of a binding until OpenSearch grants or denies the right
// to the user.
func BenchmarkChangeToEffective(b *testing.B) {
	const changes = 60
	bed := newTestEnv(b)
	bed.Reflector()
	bed.connect()
	bed.serve()
	bed.user("anna")
	bed.user("ben")
	bed.role("watchers")
	bed.bind("one", "watchers", "ben")
	bed.login("anna", first, http.StatusOK)
	bed.login("ben", first, http.StatusOK)
	anna := bed.person("anna")
	for b.Loop() {
		var given, taken []time.Duration
		for range changes / 2 {
			for _, to := range []struct {
				users  []any
				status int
				took   *[]time.Duration
			}{{[]any{"anna", "ben"}, http.StatusOK, &given}, {[]any{"ben"}, http.StatusForbidden, &taken}} {
				began := time.Now()
				bed.bind("one", "watchers", to.users...)
				testenv.Eventually(b, soon, func() error {
					return anna.gets(b.Context(), to.status, first, "/_cluster/health")
				})
				*to.took = append(*to.took, time.Since(began))
				bed.AwaitNoCalls()
			}
		}
		for name, took := range map[string][]time.Duration{"given": given, "taken": taken} {
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "ms/"+name+"-p50")
			b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "ms/"+name+"-max")
		}
	}
}
