//go:build integration

package watcher_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"connectrpc.com/connect"
	"github.com/nats-io/nats.go"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestEveryReplicaAnswersWhereAChangeIs(t *testing.T) {
	b := newBed(t)
	b.apply("demo", "1")
	b.run()
	b.becomes()
	_, url := b.runOn(b.kube.Config(t, topology.Watcher))
	standby := syncv1connect.NewSyncServiceClient(http.DefaultClient, url)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)

	var trace *syncv1.TraceObjectResponse
	testenv.Eventually(t, within, func() (err error) {
		trace, err = standby.TraceObject(t.Context(), &syncv1.TraceObjectRequest{Resource: "fgastore", Name: "demo"})
		return err
	})
	if last := b.last("demo"); trace.GetSequence() != last.Sequence || trace.GetResourceVersion() != last.Version {
		t.Errorf("trace is %v, on the bus is %+v", trace, last.Entry)
	}
	testenv.Eventually(t, within, func() error {
		status, err := standby.GetStatus(t.Context(), &syncv1.GetStatusRequest{})
		if err == nil && (status.GetObjects() != 1 || !slices.ContainsFunc(status.GetSnapshots(), func(s *syncv1.Snapshot) bool {
			return s.GetCurrent() && s.GetMarker().GetResource() == "stores" && s.GetMarker().GetCount() == 1
		})) {
			err = fmt.Errorf("status is %v", status)
		}
		return err
	})
	_, err := standby.TraceObject(t.Context(), &syncv1.TraceObjectRequest{Resource: "store"})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a trace of no name: %v", err)
	}
}

func TestAStandbyReplaysAndTheLeaderGoesOn(t *testing.T) {
	b := newBed(t)
	b.apply("demo", "1")
	b.run()
	b.becomes()
	_, url := b.runOn(b.kube.Config(t, topology.Watcher))
	standby := syncv1connect.NewSyncServiceClient(http.DefaultClient, url)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)

	if _, err := b.js.PublishMsg(t.Context(), &nats.Msg{Subject: topology.ChangeSubject(store("squatted")), Data: []byte("?")}); err != nil {
		t.Fatal(err)
	}
	b.apply("squatted", "1")
	b.becomes()
	ref := &eventv1.ObjectRef{Group: kinds.Stores().Group, Resource: "stores", Name: "demo"}
	var replayed *syncv1.ReplayResponse
	testenv.Eventually(t, within, func() (err error) {
		replayed, err = standby.Replay(t.Context(), &syncv1.ReplayRequest{What: &syncv1.ReplayRequest_Ref{Ref: ref}})
		return err
	})
	if last := b.last("demo"); last.Sequence != replayed.GetSequence() {
		t.Errorf("replayed at %d, on the bus is %+v", replayed.GetSequence(), last.Entry)
	}
	b.apply("demo", "2") // The leader still assumes that its own message exists.
	b.becomes()
}
