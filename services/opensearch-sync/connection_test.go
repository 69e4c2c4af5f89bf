package opensearchsync

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
)

// fakeSecrets holds Secrets by name and counts the reads of each.
type fakeSecrets struct {
	secrets map[string]corev1.Secret

	mu    sync.Mutex
	reads map[string]int
}

func (v *fakeSecrets) Get(_ context.Context, kind kinds.Kind, namespace, name string) (event.Change, error) {
	v.mu.Lock()
	v.reads[name]++
	v.mu.Unlock()
	secret, there := v.secrets[name]
	if !there {
		return event.Change{}, kube.ErrNotFound
	}
	data, err := json.Marshal(secret)
	key := event.Key{Cluster: "local", GroupResource: kind.GroupResource, Namespace: namespace, Name: name}
	return event.Change{Key: key, ResourceVersion: secret.ResourceVersion, Object: data}, err
}

// put creates or updates a Secret.
func (v *fakeSecrets) put(name string, values map[string]string) {
	v.secrets[name] = corev1.Secret{Data: map[string][]byte{}}
	for key, value := range values {
		v.secrets[name].Data[key] = []byte(value)
	}
}

func newFakeSecrets() *fakeSecrets {
	return &fakeSecrets{secrets: map[string]corev1.Secret{}, reads: map[string]int{}}
}

func (v *fakeSecrets) connections(needed func(uid string) bool) *connectionPool {
	return &connectionPool{
		secrets: secretValueReader{v}, local: true, needed: needed, log: slog.New(slog.DiscardHandler), open: map[string]*clusterConnection{},
	}
}

func clusterOf(uid string) *opensearchv1.OpenSearchCluster {
	return &opensearchv1.OpenSearchCluster{ObjectMeta: metav1.ObjectMeta{
		Name: "search", Namespace: "default", UID: types.UID(uid), Annotations: map[string]string{opensearchv1.ConnectionAnnotation: "connection"},
	}}
}

// A cluster that is deleted, created again or reached otherwise leaves no open connection behind.
func TestConnectionPoolClosesUnneeded(t *testing.T) {
	var open atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"cluster_uuid":"it"}`) }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		case http.StateActive, http.StateIdle:
		}
	}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	defer server.Close()
	v, needed := newFakeSecrets(), map[string]bool{}
	is := v.connections(func(uid string) bool { return needed[uid] })
	reach := func(uid, password string) *clusterConnection {
		t.Helper()
		authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		v.put("connection", map[string]string{"url": server.URL, "ca.crt": string(authority), "username": "admin", "password": password})
		needed[uid] = true
		to, err := is.connectionFor(t.Context(), clusterOf(uid))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.client.ClusterUUID(t.Context()); err != nil {
			t.Fatal(err)
		}
		return to
	}
	left := func(what string, connections int64) {
		t.Helper()
		for until := time.Now().Add(10 * time.Second); open.Load() != connections && time.Now().Before(until); {
			<-time.After(time.Millisecond)
		}
		if n := open.Load(); n != connections || len(is.open) != int(connections) {
			t.Fatalf("%s: %d connections to the server, for %d clusters, want %d", what, n, len(is.open), connections)
		}
	}
	first := reach("a", "one")
	if again := reach("a", "one"); again != first {
		t.Error("what leads to the same is another")
	}
	first.logins.scheduleFlush(1, true)
	if reach("a", "two"); first.logins.isFlushPending() {
		t.Error("what was there before still forgets logins")
	}
	left("with another password", 1)
	reach("b", "two")
	needed["a"] = false
	if is.closeUnneeded() {
		t.Error("one that has nothing to do is busy")
	}
	left("without the first cluster", 1)
	for i := range 20 {
		needed = map[string]bool{}
		reach(fmt.Sprint("c-", i), "two")
		left("of one that is made anew", 1)
	}
	is.closeAll()
}

// A login in progress may still admit a user that was just removed.
func TestConnectionPoolClosesAfterAuthCacheFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forgotten := 0
		is := newFakeSecrets().connections(func(string) bool { return false })
		client, err := search.New(search.ConnectionSettings{URL: "https://x:9200", Insecure: true, User: "a", Password: "b"})
		if err != nil {
			t.Fatal(err)
		}
		is.open["a"] = &clusterConnection{client: client, logins: newAuthCacheFlusher(func(context.Context) error { forgotten++; return nil }, is.log)}
		is.open["a"].logins.scheduleFlush(1, true)
		for is.closeUnneeded() {
			<-time.After(untilForgotten)
			synctest.Wait()
		}
		if forgotten != 2 || len(is.open) > 0 {
			t.Errorf("logins were forgotten %d times, %d are open", forgotten, len(is.open))
		}
	})
}

func TestPasswordTagKeyDependsOnCredentialsAndCluster(t *testing.T) {
	certificate := search.ConnectionSettings{Certificate: []byte("c"), Key: []byte("k")}
	password := search.ConnectionSettings{User: "admin", Password: "k"}
	of := func(uid string, s search.ConnectionSettings) []byte {
		key, err := passwordTagKey(uid, s)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	keys := [][]byte{of("u", certificate), of("v", certificate), of("u", password)}
	for i, key := range keys {
		if len(key) != 32 {
			t.Errorf("key %d has %d bytes", i, len(key))
		}
		for j := range keys[:i] {
			if bytes.Equal(key, keys[j]) {
				t.Errorf("keys %d and %d are the same", j, i)
			}
		}
	}
	if renewed := (search.ConnectionSettings{Certificate: []byte("d"), Key: []byte("k")}); !bytes.Equal(of("u", renewed), keys[0]) {
		t.Error("a new certificate of the same key has another")
	}
}
