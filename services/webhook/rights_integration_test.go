//go:build integration

package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/webhook"
	"github.com/entail-dev/entail/services/webhook/internal/validating"
)

const object = "large"

// rights is a webhook that lacks one right at a time.
type rights struct {
	*bed

	suite testenv.RightsSuite
}

func TestWebhookReportsEachMissingRight(t *testing.T) {
	r := &rights{bed: &bed{Env: testenv.NewEnv(t)}}
	r.set = func(c *webhook.Config) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			r.T.Fatal(err)
		}
		c.RPC.Auth, c.Admission.Service, c.Admission.Listener = rpc.AuthKubernetes, "default/nowhere", listener
		c.Embed.Log = r.suite.Log.Logger(r.T, slog.LevelInfo)
	}
	r.StartReflector()
	r.declare() // Later the API server would call webhooks that it does not reach.
	r.suite = testenv.RightsSuite{
		Env: r.Env, Service: topology.Webhook, WebhookConfiguration: validating.Name, Log: &testenv.LogBuffer{}, AwaitIdle: r.idle,
		Start: func() *testenv.RunningService { r.serve(); return r.running },
		CreateObjects: func() {
			_, r.client = r.account("reviewer")
			r.mayReview("reviewer")
		},
		CallWithoutRights: func(ctx context.Context, caller *http.Client, url string) error {
			_, err := accessv1connect.NewAccessServiceClient(caller, url).CheckAccess(ctx, &accessv1.CheckAccessRequest{
				Subject: &accessv1.Subject{User: "nobody"}, Verb: "get", Resource: projectNamed("none"),
			})
			return err
		},
		Triggers: map[string]testenv.RightTrigger{
			"get namespaces": { // The first object that is too large requires the identity of the cluster.
				RequireRight: func(testenv.RightCase) {
					r.PublishOversized(kinds.Organizations(), r.object(kinds.Organizations(), "", nil).GetNamespace(), "first")
				},
				AwaitReport: r.refuses,
			},
		},
	}
	r.suite.Run(t)
}

// declare makes an object of each followed kind.
func (r *rights) declare() {
	r.T.Helper()
	ref := map[string]any{"name": object}
	specs := map[kinds.Kind]any{
		kinds.Stores():             map[string]any{"coreModule": "module core\ntype user\n"},
		kinds.ProtectedResources(): map[string]any{"serviceRef": ref, "kind": "Pond", "singular": "pond", "plural": "ponds", "permissions": []any{"get"}},
		kinds.IAMRoles():           map[string]any{"launchStage": "Beta"},
		kinds.PolicyBindings(): map[string]any{
			"roleRef": ref, "subjects": []any{subjectFromMessage("User", object, "uid")},
			"resourceSelector": map[string]any{"resourceKind": map[string]any{"apiGroup": "example.com", "kind": "Pond"}},
		},
		kinds.IAMGroups():          nil,
		kinds.GroupMemberships():   map[string]any{"userRef": ref, "groupRef": map[string]any{"name": object, "namespace": namespace}},
		kinds.IAMUsers():           map[string]any{"email": "somebody@example.com"},
		kinds.IAMServiceAccounts(): nil,
		kinds.Organizations():      map[string]any{"type": "Standard"},
		kinds.Projects():           map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": object}},
	}
	reader, _ := topology.FindService(topology.Webhook)
	for _, resource := range reader.Kinds {
		kind, _ := kinds.ByResource(resource)
		spec, known := specs[kind]
		if !known {
			r.T.Fatalf("no object is known of the kind %s", resource)
		}
		r.create(kind, object, spec)
	}
	r.create(kinds.Organizations(), "first", specs[kinds.Organizations()])
}

// idle waits until the service has read the whole stream and answers from it.
func (r *rights) idle() {
	r.T.Helper()
	testenv.Eventually(r.T, soon, func() error {
		stream, err := r.JS.Stream(r.T.Context(), topology.Changes)
		if err != nil {
			return err
		}
		at, last := r.running.MetricValue(r.T, `entail_view_position{service="webhook"}`), stream.CachedInfo().State.LastSeq
		if at < float64(last) {
			return fmt.Errorf("got last change %g, want %d", at, last)
		}
		if err := r.ready(); err != nil {
			return err
		}
		_, err = r.get("nobody", "none", nil)
		return err
	})
}

// ready returns why the service is not ready.
func (b *bed) ready() error {
	request, err := http.NewRequestWithContext(b.T.Context(), http.MethodGet, b.running.URL+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		err = errors.New(string(text))
	}
	return err
}

// refuses waits until the service is not ready because of a missing right, and expects that it gives no answer.
func (r *rights) refuses(c testenv.RightCase) {
	r.T.Helper()
	testenv.Eventually(r.T, soon, func() error {
		if err := r.ready(); err == nil || !strings.Contains(err.Error(), c.DenialText()) {
			return fmt.Errorf("not ready for %w", err)
		}
		return nil
	})
	if _, err := r.get("nobody", "none", nil); connect.CodeOf(err) != connect.CodeUnavailable {
		r.T.Errorf("got %v from a service that is not ready, want unavailable", err)
	}
}
