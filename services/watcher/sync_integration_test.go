//go:build integration

package watcher_test

import (
	"net/http"
	"testing"

	"github.com/nats-io/nats.go"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestStandbyCanReplay(t *testing.T) {
	b := newTestEnv(t)
	b.apply("demo", "1")
	b.run()
	b.becomes()
	_, url := b.runOn(b.kube.ServiceConfig(t, topology.Watcher))
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
