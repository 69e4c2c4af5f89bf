//go:build integration

package opensearchsync_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	opensearchv1 "github.com/entail-dev/entail/gen/entail/opensearch/v1"
	"github.com/entail-dev/entail/gen/entail/opensearch/v1/opensearchv1connect"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
)

// TestEachMissingRightIsToldAndWaitedFor takes the rights of the table from the service, one at a time: it says which one it
// lacks, and once it has that again, all is done that was to be done.
func TestEachMissingRightIsToldAndWaitedFor(whole *testing.T) {
	b := newBed(whole)
	b.Kube.ServeLegacyOpenSearch(whole)
	b.Reflector()
	b.connect()
	start := func() *testbed.Running {
		return b.serveWith(func(c *opensearchsync.Config) { c.Legacy, c.RPC.Auth = true, rpc.Kubernetes })
	}
	running := start()
	for i, right := range testbed.Rights(topology.OpensearchSync) {
		whole.Run(right.String(), func(t *testing.T) {
			b.T = t
			defer func() { b.T = whole }()
			w := &want{bed: b, right: right, name: fmt.Sprintf("object-%d", i)}
			w.prepare()
			said := len(b.log.Bytes())
			give := b.Kube.Revoke(t, topology.OpensearchSync, right)
			if right.Resource == "namespaces" { // It is read once.
				running.Stop()
				b.T = whole
				running = start()
				b.T = t
			}
			done := w.ask(running.URL)
			testbed.Eventually(t, soon, func() error { return b.log.Warns(said, right.Denial()) })
			if kind := w.kind(); right.Resource == kind.Resource && right.Verb == "patch" {
				b.state(kind, w.name, "PENDING", right.Denial())
			}
			give()
			done()
			b.CaughtUp(topology.OpensearchSync)
		})
	}
}

// want is something that the service needs a right for.
type want struct {
	*bed
	right testbed.Right
	name  string
}

// kind is that of the objects which the right is on, or of some that need it as well.
func (w *want) kind() kinds.Kind {
	resource, _, _ := strings.Cut(w.right.Resource, "/")
	kind, known := kinds.Of(event.GroupResource{Group: w.right.Group, Resource: resource})
	if !known {
		return kinds.OpenSearchRoles()
	}
	return kind
}

// reads is whether the right is to read objects that are followed.
func (w *want) reads() bool { return w.right.Verb == "get" && w.right.Resource != "namespaces" }

// prepare makes what is there while the service has all rights.
func (w *want) prepare() {
	w.T.Helper()
	switch kind := w.kind(); {
	case !w.reads():
	case kind == kinds.OpenSearchClusters():
		w.name = cluster
	case kind == kinds.Legacy(kinds.OpenSearchClusters()):
		w.put(kind, w.name, spec(map[string]any{}))
		w.Settled()
	default:
		w.declare(kind)
		w.state(kind, w.name, "CREATED", "")
		w.Settled()
	}
}

// ask has the service need the right. The function waits until it has done what it needed it for.
func (w *want) ask(url string) (done func()) {
	w.T.Helper()
	kind := w.kind()
	switch {
	case w.right.Resource == "tokenreviews" || w.right.Resource == "subjectaccessreviews":
		_, caller := w.Kube.Caller(w.T, w.name) // Who may not ask, which can only be found out with the right.
		client := opensearchv1connect.NewOpenSearchServiceClient(caller, url)
		ask := func(ctx context.Context) error {
			_, err := client.GetSyncStatus(ctx, &opensearchv1.GetSyncStatusRequest{Cluster: &opensearchv1.ClusterRef{Namespace: namespace, Name: cluster}})
			return err
		}
		testbed.Answers(w.T, soon, connect.CodeInternal, ask)
		return func() { testbed.Answers(w.T, soon, connect.CodePermissionDenied, ask) }
	case w.right.Resource == "events":
		w.role("readall") // It is OpenSearch's own, of which people are told.
		return func() {
			w.state(kinds.OpenSearchRoles(), "readall", "IGNORED", "")
			w.role("logstash")
			w.noted("logstash")
		}
	case w.reads():
		w.Oversize(kind, namespace, w.name)
		return func() {}
	}
	w.declare(kind)
	return func() { w.state(kind, w.name, "CREATED", "") }
}

// declare makes an object for which something is made in OpenSearch.
func (w *want) declare(kind kinds.Kind) {
	w.T.Helper()
	w.put(kind, w.name, spec(map[string]map[string]any{
		"OpensearchUser":            {"passwordFrom": map[string]any{"name": "passwords", "key": "anna"}},
		"OpensearchRole":            {"clusterPermissions": []any{"cluster_monitor"}},
		"OpensearchUserRoleBinding": {"roles": []any{"readall"}, "users": []any{w.name}},
		"OpensearchTenant":          {"description": w.name},
		"OpensearchActionGroup":     {"allowedActions": []any{"indices:data/read*"}, "type": "index"},
	}[kind.Kind]))
}

// noted waits until people were told of an object.
func (w *want) noted(name string) {
	w.T.Helper()
	testbed.Eventually(w.T, soon, func() error {
		events, err := w.core.CoreV1().Events(namespace).List(w.T.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		if err == nil && len(events.Items) == 0 {
			err = fmt.Errorf("nothing was told of %s", name)
		}
		return err
	})
}
