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
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/webhook"
	"github.com/entail-dev/entail/services/webhook/internal/guard"
)

const object = "large"

// TestEachMissingRightIsToldAndWaitedFor takes the rights of the table from the service, one at a time: it says which one it
// lacks, answers nothing by what it may not know, and goes on once it has that again.
func TestEachMissingRightIsToldAndWaitedFor(whole *testing.T) {
	var log testbed.Log
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		whole.Fatal(err)
	}
	b := &bed{Bed: testbed.NewBed(whole), set: func(c *webhook.Config) {
		c.RPC.Auth, c.Admission.Service, c.Admission.Listener = rpc.Kubernetes, "default/nowhere", listener
		c.Embed.Log = log.Logger(whole, slog.LevelInfo)
	}}
	webhooks := b.Kube.Webhooks(whole, guard.Name)
	b.Reflector()
	b.declare() // Before the API server is to ask webhooks that it does not find.
	b.serve()
	whole.Cleanup(func() {
		b.running.Stop()
		_ = webhooks.Delete(context.WithoutCancel(whole.Context()))
	})
	_, b.client = b.account("reviewer")
	b.mayReview("reviewer")
	for _, right := range testbed.Rights(topology.Webhook) {
		whole.Run(right.String(), func(t *testing.T) {
			b.T = t
			defer func() { b.T = whole }()
			w := &want{bed: b, right: right, webhooks: webhooks}
			w.registered()
			w.Settled()
			said := len(log.Bytes())
			give := b.Kube.Revoke(t, topology.Webhook, right)
			done := w.ask()
			testbed.Eventually(t, soon, func() error { return log.Warns(said, right.Denial()) })
			give()
			done()
			w.registered()
		})
	}
}

// declare makes an object of each kind that is followed.
func (b *bed) declare() {
	b.T.Helper()
	ref := map[string]any{"name": object}
	specs := map[kinds.Kind]any{
		kinds.Stores():             map[string]any{"coreModule": "module core\ntype user\n"},
		kinds.ProtectedResources(): map[string]any{"serviceRef": ref, "kind": "Pond", "singular": "pond", "plural": "ponds", "permissions": []any{"get"}},
		kinds.IAMRoles():           map[string]any{"launchStage": "Beta"},
		kinds.PolicyBindings(): map[string]any{
			"roleRef": ref, "subjects": []any{subject("User", object, "uid")},
			"resourceSelector": map[string]any{"resourceKind": map[string]any{"apiGroup": "example.com", "kind": "Pond"}},
		},
		kinds.Groups():             nil,
		kinds.GroupMemberships():   map[string]any{"userRef": ref, "groupRef": map[string]any{"name": object, "namespace": namespace}},
		kinds.Users():              map[string]any{"email": "somebody@example.com"},
		kinds.IAMServiceAccounts(): nil,
		kinds.Organizations():      map[string]any{"type": "Standard"},
		kinds.Projects():           map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": object}},
	}
	reader, _ := topology.ServiceNamed(topology.Webhook)
	for _, resource := range reader.Kinds {
		kind, _ := kinds.Of(resource)
		spec, known := specs[kind]
		if !known {
			b.T.Fatalf("no object is known of the kind %s", resource)
		}
		b.create(kind, object, spec)
	}
	b.create(kinds.Organizations(), "first", specs[kinds.Organizations()])
}

// registered waits until all is as it must be.
func (w *want) registered() {
	w.T.Helper()
	testbed.Eventually(w.T, soon, func() error { return errors.Join(w.webhooks.Kept(w.T.Context()), w.ready()) })
}

// ready is why the service is not.
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

// want is something that the service needs a right for.
type want struct {
	*bed
	right    testbed.Right
	webhooks testbed.Webhooks
}

// ask has the service need the right. The function waits until it has done what it needed it for.
func (w *want) ask() (done func()) {
	w.T.Helper()
	kind, read := kinds.Of(w.right.GroupResource)
	switch {
	case w.right.Resource == "namespaces": // The identity of the cluster is read with the first object that is too large.
		done = w.large(kinds.Organizations(), "first")
		w.answersNothing()
		return done
	case read && !kind.Named:
		return w.large(kind, object)
	case w.right.Resource == "tokenreviews" || w.right.Resource == "subjectaccessreviews":
		_, caller := w.account("caller") // Of whom nothing is known yet.
		ask := func(ctx context.Context) error {
			_, err := caller.CheckAccess(ctx, &accessv1.CheckAccessRequest{Subject: &accessv1.Subject{User: "nobody"}, Verb: "get", Resource: projectNamed("none")})
			return err
		}
		testbed.Answers(w.T, soon, connect.CodeInternal, ask)
		return func() { testbed.Answers(w.T, soon, connect.CodePermissionDenied, ask) }
	}
	take := w.webhooks.Delete
	if w.right.Verb == "update" {
		take = w.webhooks.Empty
	}
	if err := take(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
	return func() {}
}

// large has the bus say of an object that it is too large for it. The function waits until it was read elsewhere.
func (w *want) large(kind kinds.Kind, name string) (done func()) {
	w.T.Helper()
	in := w.object(kind, name, nil).GetNamespace()
	w.Oversize(kind, in, name)
	stream, err := w.JS.Stream(w.T.Context(), topology.Changes)
	if err != nil {
		w.T.Fatal(err)
	}
	return func() {
		testbed.Eventually(w.T, soon, func() error {
			if at := w.running.Metric(w.T, `entail_view_position{service="webhook"}`); at < float64(stream.CachedInfo().State.LastSeq) {
				return fmt.Errorf("it has read up to %g", at)
			}
			_, err := w.get("nobody", "none", nil)
			return err
		})
	}
}

// answersNothing waits until the service says of itself that it lacks the right, and then wants no answer.
func (w *want) answersNothing() {
	w.T.Helper()
	testbed.Eventually(w.T, soon, func() error {
		if err := w.ready(); err == nil || !strings.Contains(err.Error(), w.right.Denial()) {
			return fmt.Errorf("not ready for %w", err)
		}
		return nil
	})
	if _, err := w.get("nobody", "none", nil); connect.CodeOf(err) != connect.CodeUnavailable {
		w.T.Errorf("it is answered by what may be old: %v", err)
	}
}
