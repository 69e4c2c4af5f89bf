//go:build integration

package opensearchsync_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	opensearchv1 "github.com/entail-dev/entail/gen/entail/opensearch/v1"
	"github.com/entail-dev/entail/gen/entail/opensearch/v1/opensearchv1connect"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
)

// revokedRightEnv runs an opensearch-sync that lacks one right after the other.
type revokedRightEnv struct {
	*testEnv

	suite testenv.RightsSuite
}

func TestOpenSearchSyncReportsEachMissingRight(t *testing.T) {
	r := &revokedRightEnv{testEnv: newTestEnv(t)}
	r.Kube.ServeLegacyOpenSearch(t)
	r.Reflector()
	r.connect()
	r.suite = testenv.RightsSuite{
		Env: r.Env, Service: topology.OpensearchSync, Log: &r.log, CreateObjects: r.fill, Triggers: r.uses(),
		Start: func() *testenv.RunningService {
			return r.serveWith(func(c *opensearchsync.Config) { c.Legacy, c.RPC.Auth = true, rpc.AuthKubernetes })
		},
		AwaitIdle: func() { r.AwaitCaughtUp(topology.OpensearchSync) },
		CallWithoutRights: func(ctx context.Context, caller *http.Client, url string) error {
			_, err := opensearchv1connect.NewOpenSearchServiceClient(caller, url).
				GetSyncStatus(ctx, &opensearchv1.GetSyncStatusRequest{Cluster: &opensearchv1.ClusterRef{Namespace: namespace, Name: cluster}})
			return err
		},
	}
	r.suite.Run(t)
}

// fill creates an object of each kind that the service follows.
func (r *revokedRightEnv) fill() {
	r.T.Helper()
	r.put(kinds.ToLegacyOpenSearchKind(kinds.OpenSearchClusters()), "legacy", spec(map[string]any{}))
	for i, kind := range append(kinds.OpenSearchKinds(), kinds.LegacyOpenSearchKinds()...) {
		if kind.Kind != kinds.OpenSearchClusters().Kind {
			name := fmt.Sprintf("first-%d", i)
			r.declare(kind, name)
			r.state(kind, name, "CREATED", "")
		}
	}
}

// uses returns, for each right, the action that needs it.
func (r *revokedRightEnv) uses() map[string]testenv.RightTrigger {
	role := kinds.OpenSearchRoles()
	return map[string]testenv.RightTrigger{
		"get namespaces": {
			RequireRight: func(c testenv.RightCase) {
				r.suite.Restart()
				r.declare(role, c.Name)
			},
			AwaitDone: func(c testenv.RightCase) { r.state(role, c.Name, "CREATED", "") },
		},
		"create events": {
			RequireRight: func(testenv.RightCase) { r.role("readall") }, // OpenSearch protects this role: an Event reports that it is ignored.
			AwaitDone: func(testenv.RightCase) {
				r.state(role, "readall", "IGNORED", "")
				r.role("logstash")
				r.noted("logstash")
			},
		},
		"patch opensearchclusters/status": {
			RequireRight: func(c testenv.RightCase) { r.put(c.Kind, c.Name, spec(map[string]any{})) },
			AwaitDone: func(c testenv.RightCase) {
				r.AwaitCondition(c.Kind.InNamespace(namespace), c.Name, "Reachable", "ClusterNotRunning")
			},
		},
		"record *": {
			RequireRight: func(c testenv.RightCase) { r.declare(c.Kind, c.Name) },
			AwaitDone:    func(c testenv.RightCase) { r.state(c.Kind, c.Name, "CREATED", "") },
		},
		"patch *": {
			RequireRight: func(c testenv.RightCase) { r.declare(c.Kind, c.Name) },
			AwaitReport: func(c testenv.RightCase) {
				if c.Resource == c.Kind.Resource { // The service can still write the status.
					r.state(c.Kind, c.Name, "PENDING", c.DenialText())
				}
			},
			AwaitDone: func(c testenv.RightCase) { r.state(c.Kind, c.Name, "CREATED", "") },
		},
	}
}

// declare creates an object that leads to an entity in OpenSearch.
func (r *revokedRightEnv) declare(kind kinds.Kind, name string) {
	r.T.Helper()
	r.put(kind, name, spec(map[string]map[string]any{
		"OpensearchUser":            {"passwordFrom": map[string]any{"name": "passwords", "key": "anna"}},
		"OpensearchRole":            {"clusterPermissions": []any{"cluster_monitor"}},
		"OpensearchUserRoleBinding": {"roles": []any{"readall"}, "users": []any{name}},
		"OpensearchTenant":          {"description": name},
		"OpensearchActionGroup":     {"allowedActions": []any{"indices:data/read*"}, "type": "index"},
	}[kind.Kind]))
}

// noted waits until there is an Event about an object.
func (r *revokedRightEnv) noted(name string) {
	r.T.Helper()
	testenv.Eventually(r.T, soon, func() error {
		events, err := r.core.CoreV1().Events(namespace).List(r.T.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		if err == nil && len(events.Items) == 0 {
			err = fmt.Errorf("got no event about %s", name)
		}
		return err
	})
}
