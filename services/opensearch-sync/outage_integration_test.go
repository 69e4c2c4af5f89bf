//go:build integration

package opensearchsync_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/leak"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// listed returns the exact listing of the server at a path.
func (b *testEnv) listed(path string) string {
	b.T.Helper()
	status, data := b.search.RequestAsAdmin(b.T, http.MethodGet, "/_plugins/_security/api/"+path, nil)
	return fmt.Sprint(status, string(data))
}

// inStep waits until anna and ben have the rights that their objects declare.
func (b *testEnv) inStep() {
	b.T.Helper()
	b.login("anna", first, http.StatusOK)
	b.login("ben", first, http.StatusOK)
	b.mappedTo("watchers", "anna", "ben")
	for _, name := range []string{"anna", "ben"} {
		b.state(kinds.OpenSearchUsers(), name, "CREATED", "")
	}
	b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")
}

// leave deletes all objects and waits until nothing of them is left.
func (b *testEnv) leave() {
	b.T.Helper()
	b.remove(kinds.OpenSearchBindings(), "one")
	b.remove(kinds.OpenSearchRoles(), "watchers")
	for _, name := range []string{"anna", "ben"} {
		b.remove(kinds.OpenSearchUsers(), name)
		b.absent("internalusers/" + name)
	}
	b.absent("roles/watchers")
	b.absent("rolesmapping/watchers")
}

func TestLostEntitiesAreRecreated(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serve()
	b.user("anna")
	b.user("ben")
	b.role("watchers")
	b.bind("one", "watchers", "anna", "ben")
	b.inStep()
	b.search.RunSecurityAdmin(t)
	b.RequestResync(topology.OpensearchSync)
	b.inStep()
	b.search.DeleteSecurityIndex(t)
	b.search.Kill()
	b.search.Start(t)
	b.RequestResync(topology.OpensearchSync)
	b.inStep()
	b.leave()
}

// Changes that are declared while OpenSearch is slow or unreachable take effect in the end. No status reports success
// earlier, even if the outage is longer than the retry interval.
func TestSlowOrUnreachableOpenSearchLosesNoChange(t *testing.T) {
	const slow, away = 500 * time.Millisecond, 4 * time.Second
	b := newTestEnv(t)
	b.Reflector()
	b.write("internalusers/kim", map[string]any{"password": second})
	b.connect()
	b.serveWith(shortenWaits)
	b.user("anna")
	b.user("ben")
	b.role("watchers")
	b.bind("one", "watchers", "anna", "ben")
	b.inStep()
	foreign := b.listed("internalusers/kim")

	b.search.FailBefore(func(ctx context.Context, _ string) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(slow):
			return nil
		}
	})
	b.bind("one", "watchers", "anna")
	b.mappedTo("watchers", "anna")
	b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")

	b.search.FailBefore(nil)
	b.search.Stop(t)
	b.secret("passwords", map[string]string{"anna": second, "ben": first})
	b.role("later")
	b.bind("two", "later", "anna")
	b.going(kinds.OpenSearchUsers(), "ben")
	b.state(kinds.OpenSearchRoles(), "later", "PENDING", "")
	b.state(kinds.OpenSearchBindings(), "two", "PENDING", "")
	<-time.After(away)
	if _, err := b.ResourceClient(kinds.OpenSearchUsers()).Namespace(namespace).Get(t.Context(), "ben", metav1.GetOptions{}); err != nil {
		t.Errorf("a user is gone who is still in OpenSearch: %v", err)
	}
	b.state(kinds.OpenSearchRoles(), "later", "PENDING", "")

	b.search.Start(t)
	b.gone(kinds.OpenSearchUsers(), "ben")
	b.absent("internalusers/ben")
	b.login("anna", second, http.StatusOK)
	b.login("anna", first, http.StatusUnauthorized)
	b.mappedTo("later", "anna")
	b.state(kinds.OpenSearchRoles(), "later", "CREATED", "")
	b.state(kinds.OpenSearchBindings(), "two", "CREATED", "")
	if now := b.listed("internalusers/kim"); now != foreign {
		t.Errorf("what others made was\n%s\nand is\n%s", foreign, now)
	}
}

// A change without an answer may take effect when no object declares it any more. Its entries must be removed all the
// same.
func TestLateEffectOfUnansweredChangeIsReverted(t *testing.T) {
	for name, restarts := range map[string]bool{"of the same replica": false, "of the one before": true} {
		t.Run(name, func(t *testing.T) {
			b := newTestEnv(t)
			b.Reflector()
			b.connect()
			running := b.serve()
			b.role("watchers")
			b.bind("edited", "watchers", "anna")
			b.state(kinds.OpenSearchBindings(), "edited", "CREATED", "")
			var lost [3]atomic.Bool
			b.search.FailBefore(func(_ context.Context, op string) error {
				for i, prefix := range []string{"PATCH rolesmapping", "PUT internalusers/", "PATCH roles"} {
					if strings.HasPrefix(op, prefix) {
						lost[i].Store(true)
						return errors.New("the answer is lost")
					}
				}
				return nil
			})
			b.bind("edited", "watchers", "anna", "ben")
			b.bind("deleted", "watchers", "kim")
			b.user("anna")
			b.role("later")
			held := map[string]kinds.Kind{"anna": kinds.OpenSearchUsers(), "deleted": kinds.OpenSearchBindings(), "later": kinds.OpenSearchRoles()}
			testenv.Eventually(t, soon, func() error {
				for i := range lost {
					if !lost[i].Load() {
						return fmt.Errorf("%d is not sent yet", i)
					}
				}
				for name, kind := range held {
					if len(b.get(kind, name).GetFinalizers()) == 0 {
						return fmt.Errorf("%s is not held yet", name)
					}
				}
				return nil
			})
			uid := string(b.get(kinds.OpenSearchUsers(), "anna").GetUID())
			if restarts {
				running.Stop()
			}
			b.bind("edited", "watchers", "anna")
			for name, kind := range held {
				b.going(kind, name)
			}
			if restarts { // The new leader has nothing to send, so it opens no contest of its own.
				b.serve()
			}
			b.state(kinds.OpenSearchBindings(), "edited", "CREATED", "")
			b.AwaitNoCalls()
			b.search.FailBefore(nil)
			b.write("rolesmapping/watchers", map[string]any{"users": []string{"anna", "ben", "kim"}})
			b.write("internalusers/anna", map[string]any{"password": first, "attributes": map[string]any{"k8s-uid": uid}})
			b.write("roles/later", map[string]any{"cluster_permissions": []string{"cluster_monitor"}})
			for name, kind := range held {
				b.gone(kind, name)
			}
			b.mappedTo("watchers", "anna")
			b.absent("internalusers/anna")
			b.absent("roles/later")
			b.remove(kinds.OpenSearchBindings(), "edited")
			b.remove(kinds.OpenSearchRoles(), "watchers")
		})
	}
}

// A slow server writes many users one by one. Meanwhile the written ones are reported, and deleted ones are removed.
func TestManyUsersDoNotDelayRevocation(t *testing.T) {
	const users, slow = 25, 150 * time.Millisecond
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	running := b.serve()
	b.user("anna")
	b.login("anna", first, http.StatusOK)
	running.Stop()
	var names []string
	for i := range users {
		names = append(names, fmt.Sprint("user-", i))
		b.put(kinds.OpenSearchUsers(), names[i], spec(map[string]any{"passwordFrom": map[string]any{"name": "passwords", "key": "anna"}}))
	}
	var written atomic.Int64
	b.search.FailBefore(func(ctx context.Context, op string) error {
		if strings.HasPrefix(op, "PUT internalusers/") {
			written.Add(1)
			backoff.Sleep(ctx, slow)
		}
		return nil
	})
	b.serveWith(shortenWaits)
	testenv.Eventually(t, soon, func() error {
		if written.Load() == 0 {
			return errors.New("nobody is written")
		}
		return nil
	})
	b.remove(kinds.OpenSearchUsers(), "anna")
	created := 0
	for _, o := range b.List(kinds.OpenSearchUsers()).Items {
		if state, _, _ := unstructured.NestedString(o.Object, "status", "state"); state == "CREATED" {
			created++
		}
	}
	if n := written.Load(); n >= users || created == 0 {
		t.Errorf("when a user is removed, %d of %d have been written, and %d are told so", n, users, created)
	}
	b.absent("internalusers/anna")
	for _, name := range names {
		b.state(kinds.OpenSearchUsers(), name, "CREATED", "")
	}
	b.AwaitCaughtUp(topology.OpensearchSync)
	if n := written.Load(); n != users {
		t.Errorf("%d users were written %d times", users, n)
	}
	b.remove(kinds.OpenSearchUsers(), names...)
}

func TestUnreachableClusterDoesNotBlockOthers(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	named := map[string]any{"name": "connection"}
	b.put(kinds.OpenSearchClusters(), "dead", spec(map[string]any{"connection": map[string]any{
		"url": "https://127.0.0.1:1", "clientCertificateSecret": named, "caSecret": named,
	}}))
	in := func(cluster string) map[string]any {
		return spec(map[string]any{"opensearchCluster": map[string]any{"name": cluster}, "passwordFrom": map[string]any{"name": "passwords", "key": "anna"}})
	}
	b.put(kinds.OpenSearchUsers(), "lost", in("dead"))
	b.serve()
	b.state(kinds.OpenSearchUsers(), "lost", "PENDING", "does not answer")
	b.put(kinds.OpenSearchUsers(), "anna", in(cluster))
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	b.login("anna", first, http.StatusOK)
	b.remove(kinds.OpenSearchUsers(), "anna")
	b.remove(kinds.OpenSearchClusters(), "dead")
	b.remove(kinds.OpenSearchUsers(), "lost")
}

func TestPasswordsAreNeverLeaked(t *testing.T) {
	var traces testenv.LogBuffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(&traces, r.Body) }))
	t.Cleanup(collector.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	running := b.serve()
	b.user("anna")
	b.user("ben")
	b.role("watchers")
	b.bind("one", "watchers", "anna", "ben")
	b.inStep()
	const refused = "anna-Anna-anna-1"
	b.search.FailBefore(func(_ context.Context, op string) error { // The server repeats the request in its answer, or is busy.
		switch op {
		case "PUT internalusers/anna":
			return testenv.InjectedResponseError(http.StatusBadRequest, `{"status":"error","reason":"no good: `+second+`"}`)
		case "PUT internalusers/ben":
			return testenv.InjectedResponseError(http.StatusServiceUnavailable, `{"status":"error","message":"not now: `+refused+`"}`)
		}
		return nil
	})
	b.secret("passwords", map[string]string{"anna": second, "ben": refused})
	b.state(kinds.OpenSearchUsers(), "anna", "ERROR", "no good: [redacted]")
	b.search.FailBefore(nil)
	b.secret("passwords", map[string]string{"anna": second, "ben": first})
	b.login("anna", second, http.StatusOK)
	b.login("ben", first, http.StatusOK)

	_, admin := b.search.AdminCertificate()
	metrics := b.page(running.URL + "/metrics")
	running.Stop() // Stop exports the remaining traces.
	if !bytes.Contains(traces.Bytes(), []byte("opensearch-sync")) {
		t.Error("there are no traces")
	}
	kept := fstest.MapFS{"log": {Data: b.log.Bytes()}, "metrics": {Data: metrics}, "traces": {Data: traces.Bytes()}}
	for _, kind := range kinds.OpenSearchKinds() {
		data, err := json.Marshal(b.List(kind))
		if err != nil {
			t.Fatal(err)
		}
		kept[kind.Resource] = &fstest.MapFile{Data: data}
	}
	events, err := b.core.CoreV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if kept["events"] = (&fstest.MapFile{}); len(events.Items) > 0 {
		if kept["events"].Data, err = json.Marshal(events); err != nil {
			t.Fatal(err)
		}
	}
	secrets := []string{first, second, refused, strings.Split(string(admin), "\n")[1]}
	for name, files := range map[string]func() ([]string, error){
		"what is told":      func() ([]string, error) { return leak.FindSecrets(kept, secrets...) },
		"the files of NATS": func() ([]string, error) { return leak.FindSecrets(b.NATS.DataFiles(), secrets...) },
	} {
		if found, err := files(); err != nil || len(found) > 0 {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
	for name := range kept { // Prove that the search would find a leak.
		planted := fstest.MapFS{name: {Data: append(append([]byte{}, kept[name].Data...), second...)}}
		if found, err := leak.FindSecrets(planted, secrets...); err != nil || len(found) == 0 {
			t.Errorf("%s: what was planted is not found, %v", name, err)
		}
	}
	if _, err := b.JS.Publish(t.Context(), "entail.changes.planted.x.y.z.w", []byte(second)); err != nil {
		t.Fatal(err)
	}
	if found, err := leak.FindSecrets(b.NATS.DataFiles(), secrets...); err != nil || len(found) == 0 {
		t.Errorf("what was planted on the bus is not found, %v", err)
	}
	b.serve()
	b.leave()
}

func (b *testEnv) page(url string) []byte {
	b.T.Helper()
	request, err := http.NewRequestWithContext(b.T.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		b.T.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.T.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.T.Fatalf("%s: %d %v", url, response.StatusCode, err)
	}
	return data
}
