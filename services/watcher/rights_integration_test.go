//go:build integration

package watcher_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/nats-io/nats.go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rbac"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher"
)

// revokedRightEnv is a watcher of every kind that lacks one right after the other.
type revokedRightEnv struct {
	*testEnv

	suite testenv.RightsSuite
	// administrator is a caller that may replay any object.
	administrator *http.Client
}

func TestWatcherReportsEachMissingRight(t *testing.T) {
	r := &revokedRightEnv{testEnv: newTestEnv(t)}
	r.kube.ServeLegacyOpenSearch(t)
	r.kube.ServeKinds(t, kinds.APIBindings(), kinds.APIExports(), kinds.APIResourceSchemas(), kinds.AccountInfos())
	r.administrator = r.kube.CreateAdministrator(t, "administrator")
	r.suite = testenv.RightsSuite{
		Env:     &testenv.Env{T: t, Kube: r.kube, NATS: r.nats, JS: r.js},
		Service: topology.Watcher, Log: &testenv.LogBuffer{}, Start: r.start, Triggers: r.uses(),
		AwaitIdle: func() { // A watcher is ready before it leads and creates the streams.
			ready(r.suite.T, r.suite.URL(), "")
			r.awaitCurrent()
		},
		CallWithoutRights: func(ctx context.Context, caller *http.Client, url string) error {
			_, err := syncv1connect.NewSyncServiceClient(caller, url).GetStatus(ctx, &syncv1.GetStatusRequest{})
			return err
		},
	}
	r.suite.Run(t)
}

func (r *revokedRightEnv) start() *testenv.RunningService {
	cfg := watcher.Defaults()
	for _, kind := range kinds.ConsumedKinds() {
		cfg.Kinds = append(cfg.Kinds, kind.GroupResource.String())
	}
	cfg.RPC.Auth = rpc.AuthKubernetes
	cfg.Embed.Log = r.suite.Log.Logger(r.t, slog.LevelInfo)
	stop, url := r.runAsking(cfg, r.kube.ServiceConfig(r.t, topology.Watcher))
	return &testenv.RunningService{URL: url, Stop: stop}
}

// uses returns the operations that need each right. The rights on Secrets have their own tests.
func (r *revokedRightEnv) uses() map[string]testenv.RightTrigger {
	restart := func(testenv.RightCase) { r.suite.Restart() }
	notReady := func(c testenv.RightCase) { ready(r.suite.T, r.suite.URL(), c.DenialText()) }
	leads := testenv.RightTrigger{RequireRight: restart, AwaitReport: notReady, SkipLog: true}
	makesLease := leads
	makesLease.RequireRight = func(testenv.RightCase) { r.suite.Restart(r.deleteLease) }
	follows := testenv.RightTrigger{RequireRight: restart, AwaitDone: func(testenv.RightCase) { r.awaitCurrent() }}
	return map[string]testenv.RightTrigger{
		"create leases": makesLease, "get leases": leads, "update leases": leads,
		"list *": follows, "watch *": follows,
		"create events": { // They report forged messages.
			Prepare: func(c testenv.RightCase) { r.apply(c.Name, "honest"); r.becomes() },
			RequireRight: func(c testenv.RightCase) {
				r.forge(c.Name, func(_ *nats.Msg, forged *event.Change) { falsify(forged, "99999") })
			},
			AwaitDone: func(testenv.RightCase) { r.becomes() },
		},
		"get *": {
			RequireRight: func(c testenv.RightCase) { r.replays(c, connect.CodeUnavailable) },
			AwaitDone:    func(c testenv.RightCase) { r.replays(c, connect.CodeNotFound) },
			UseRight:     func(c testenv.RightCase) { r.replays(c, connect.CodeNotFound) },
		},
	}
}

func (r *revokedRightEnv) deleteLease() {
	leases := kubernetes.NewForConfigOrDie(r.kube.AdminConfig()).CoordinationV1().Leases(rbac.Namespace)
	if err := leases.Delete(r.suite.T.Context(), rbac.WatcherLease, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		r.suite.T.Fatal(err)
	}
}

// awaitCurrent waits until the stream holds the API server's present objects of every kind.
func (r *revokedRightEnv) awaitCurrent() {
	r.suite.T.Helper()
	began := time.Now()
	testenv.Eventually(r.suite.T, within, func() error {
		h, _, err := r.p.LastBarrier(r.suite.T.Context(), "local")
		if err != nil {
			return err
		}
		if at := h.GetWrittenAt().AsTime().Add(-h.GetBehind().AsDuration()); at.Before(began) {
			return fmt.Errorf("the stream is as of %s, want %s", at, began)
		}
		return nil
	})
}

// replays replays an object that does not exist, until the answer has this code. The service reads the object.
func (r *revokedRightEnv) replays(c testenv.RightCase, want connect.Code) {
	r.suite.T.Helper()
	ref := &eventv1.ObjectRef{Cluster: "local", Group: c.Group, Resource: c.Resource, Name: "nobody"}
	if !c.Kind.ClusterScoped {
		ref.Namespace = "default"
	}
	client := syncv1connect.NewSyncServiceClient(r.administrator, r.suite.URL())
	testenv.AwaitErrorCode(r.suite.T, within, want, func(ctx context.Context) error {
		_, err := client.Replay(ctx, &syncv1.ReplayRequest{What: &syncv1.ReplayRequest_Ref{Ref: ref}})
		return err
	})
}
