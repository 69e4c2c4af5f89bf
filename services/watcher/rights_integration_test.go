//go:build integration

package watcher_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"testing"

	"connectrpc.com/connect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rbac"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher"
)

// lacking is a watcher of every kind that lacks rights of the table for a while.
type lacking struct {
	*bed
	log testbed.Log
}

// TestEachMissingRightIsToldAndWaitedFor takes rights of the table from the service: it says which it lacks, and once it has
// them again, it does what it needs them for. Those on Secrets have a test of their own.
func TestEachMissingRightIsToldAndWaitedFor(whole *testing.T) {
	b := &lacking{bed: newBed(whole)}
	ofKinds := map[string][]testbed.Right{}
	for _, right := range testbed.Rights(topology.Watcher) {
		if kind, followed := kinds.Of(right.GroupResource); followed {
			if right.Verb == "list" || b.served(kind) {
				ofKinds[right.Verb] = append(ofKinds[right.Verb], right)
			}
			continue
		}
		whole.Run(right.String(), func(t *testing.T) { b.without(t, b.one, right) })
	}
	for verb, rights := range ofKinds {
		try := b.follows
		if verb == "get" {
			try = b.replays
		}
		whole.Run(verb, func(t *testing.T) { b.without(t, try, rights...) })
	}
}

// served is whether the API server has the kind.
func (b *lacking) served(kind kinds.Kind) bool {
	_, err := b.kube.Objects(b.t).Resource(kind.Served()).List(b.t.Context(), metav1.ListOptions{Limit: 1})
	return err == nil
}

// start runs a watcher of every kind, which asks so who calls it.
func (b *lacking) start(auth rpc.Auth) (url string) {
	b.t.Helper()
	cfg := watcher.Defaults()
	for _, kind := range kinds.All() {
		cfg.Kinds = append(cfg.Kinds, kind.GroupResource.String())
	}
	cfg.RPC.Auth = auth
	cfg.Embed.Log = b.log.Logger(b.t, slog.LevelInfo)
	_, url = b.runAsking(cfg, b.kube.Config(b.t, topology.Watcher))
	return url
}

// without takes rights away while try has the service need them.
func (b *lacking) without(t *testing.T, try func(give func(), rights ...testbed.Right), rights ...testbed.Right) {
	t.Helper()
	whole := b.t
	b.t = t
	t.Cleanup(func() { b.t = whole })
	var gives []func()
	for _, right := range rights {
		gives = append(gives, b.kube.Revoke(t, topology.Watcher, right))
	}
	try(func() {
		for _, give := range slices.Backward(gives) { // Each gives back what there was before.
			give()
		}
	}, rights...)
}

// told waits until the service has said of each right that it lacks it.
func (b *lacking) told(said int, rights ...testbed.Right) {
	b.t.Helper()
	for _, right := range rights {
		testbed.Eventually(b.t, within, func() error { return b.log.Warns(said, right.Denial()) })
	}
}

// one tries one right that is on no kind that is followed.
func (b *lacking) one(give func(), rights ...testbed.Right) {
	b.t.Helper()
	said, on := len(b.log.Bytes()), rights[0]
	switch on.Resource {
	case "leases":
		if on.Verb == "create" { // It is made when there is none.
			leases := kubernetes.NewForConfigOrDie(b.kube.Admin()).CoordinationV1().Leases(rbac.Namespace)
			if err := leases.Delete(b.t.Context(), rbac.Lease, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				b.t.Fatal(err)
			}
		}
		url := b.start(rpc.Kubernetes)
		ready(b.t, url, on.Denial())
		give()
		ready(b.t, url, "")
	case "namespaces":
		url := b.start(rpc.Kubernetes)
		b.told(said, on)
		give()
		ready(b.t, url, "")
	default:
		url := b.start(rpc.Kubernetes)
		ready(b.t, url, "")
		_, caller := b.kube.Caller(b.t, "caller")
		client := syncv1connect.NewSyncServiceClient(caller, url)
		ask := func(ctx context.Context) error {
			_, err := client.GetStatus(ctx, &syncv1.GetStatusRequest{})
			return err
		}
		testbed.Answers(b.t, within, connect.CodeInternal, ask)
		b.told(said, on)
		give()
		testbed.Answers(b.t, within, connect.CodePermissionDenied, ask)
	}
}

// follows tries to follow kinds.
func (b *lacking) follows(give func(), rights ...testbed.Right) {
	b.t.Helper()
	said := len(b.log.Bytes())
	b.start(rpc.Kubernetes)
	b.told(said, rights...)
	give()
	for _, kind := range kinds.All() {
		if b.served(kind) {
			testbed.Eventually(b.t, within, func() error { return b.current(b.t.Context(), kind) })
		}
	}
}

// replays tries to have one object of each kind published again, which reads it.
func (b *lacking) replays(give func(), rights ...testbed.Right) {
	b.t.Helper()
	said := len(b.log.Bytes())
	url := b.start(rpc.None)
	ready(b.t, url, "")
	client := syncv1connect.NewSyncServiceClient(http.DefaultClient, url)
	replay := func(right testbed.Right) error {
		ref := &eventv1.ObjectRef{Cluster: "local", Group: right.Group, Resource: right.Resource, Namespace: "default", Name: "nobody"}
		if kind, _ := kinds.Of(right.GroupResource); kind.Global {
			ref.Namespace = ""
		}
		_, err := client.Replay(b.t.Context(), &syncv1.ReplayRequest{What: &syncv1.ReplayRequest_Ref{Ref: ref}})
		return err
	}
	for _, right := range rights {
		if err := replay(right); connect.CodeOf(err) != connect.CodeUnavailable {
			b.t.Errorf("%s: the answer is %v", right, err)
		}
	}
	b.told(said, rights...)
	give()
	for _, right := range rights {
		testbed.Eventually(b.t, within, func() error {
			if err := replay(right); connect.CodeOf(err) != connect.CodeNotFound {
				return fmt.Errorf("%s: the answer is %w", right, err)
			}
			return nil
		})
	}
}
