//go:build integration

package opensearchsync_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// A change on the stream that the API server does not know reads no Secret, sends no credential and deletes no user.
func TestSecretsAndDeletionsRequireObjectAtAPIServer(t *testing.T) {
	const others = "GET /api/v1/namespaces/" + namespace + "/secrets/others"
	inside := func(object map[string]any, field string) map[string]any {
		found, _ := object[field].(map[string]any)
		return found
	}
	for name, f := range map[string]testenv.Forgery{
		"user with another Secret": {Kind: kinds.OpenSearchUsers(), Name: "anna", Edit: func(_ *event.Change, o map[string]any) {
			inside(inside(o, "spec"), "passwordFrom")["name"] = "others"
		}},
		"cluster with another Secret": {Kind: kinds.OpenSearchClusters(), Name: cluster, Edit: func(_ *event.Change, o map[string]any) {
			inside(inside(o, "metadata"), "annotations")["entail.dev/connection-secret"] = "others"
		}},
		"deleted user": {Kind: kinds.OpenSearchUsers(), Name: "anna", Edit: func(c *event.Change, _ map[string]any) { c.Deleted = true }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestEnv(t)
			b.secret("others", map[string]string{"anna": second, "url": "https://127.0.0.1:1"})
			b.Reflector()
			b.connect()
			b.serve()
			b.user("anna")
			b.login("anna", first, http.StatusOK)
			b.AwaitCaughtUp(topology.OpensearchSync)
			b.AwaitNoCalls()
			f.Namespace = namespace
			get := fmt.Sprintf("GET /apis/%s/%s/namespaces/%s/%s/%s", f.Kind.Group, f.Kind.Version, namespace, f.Kind.Resource, f.Name)
			before := b.Kube.CallsByOp()[get]
			b.PublishForgery(f, 1)
			testenv.Eventually(t, soon, func() error {
				if b.Kube.CallsByOp()[get] == before {
					return fmt.Errorf("no call of %s", get)
				}
				return nil
			})
			b.AwaitCaughtUp(topology.OpensearchSync)
			b.AwaitNoCalls()
			if n := b.Kube.CallsByOp()[others]; n != 0 {
				t.Errorf("got %d reads of the other Secret, want none", n)
			}
			b.login("anna", first, http.StatusOK)
		})
	}
}
