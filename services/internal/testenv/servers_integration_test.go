//go:build integration

package testenv

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/topology"
)

const deadline = 10 * time.Second

func dial(t *testing.T, server *OpenFGAServer) *fga.Client {
	t.Helper()
	client, err := fga.Dial(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestWriteBarriersResumesAfterLostConnection(t *testing.T) {
	server := StartNATS(t)
	js := server.JetStream(t)
	if err := topology.EnsureStreams(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	publisher := publish.New(js)
	barriers := NewBarrierWriter(publisher, local)
	if err := barriers.Write(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	key := event.Key{Cluster: local, GroupResource: kinds.Stores().GroupResource, Name: "a"}
	if _, err := publisher.PublishChange(t.Context(), event.Change{Key: key, UID: "u", ResourceVersion: "1", Epoch: "e", Object: []byte("{}")}, 0, publish.PublicationOptions{}); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	server.Start(t)
	Eventually(t, deadline, func() error { return barriers.Write(t.Context(), 0) })
}

func TestOpenFGATrafficCountsWritesOnly(t *testing.T) {
	server := LazyOpenFGA(t)
	client := dial(t, server)
	id, err := client.CreateStore(t.Context(), "counted")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Client(t).CreateStore(t.Context(), "aside"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ReadLatestModel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := client.DeleteStore(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got := server.WritesByOp(); server.Writes() != 2 || got["CreateStore"] != 1 || got["DeleteStore"] != 1 {
		t.Errorf("counted %v; want one CreateStore and one DeleteStore", got)
	}
}

func TestOpenFGATrafficInjectsFaults(t *testing.T) {
	server := LazyOpenFGA(t)
	client := dial(t, server)
	broken := errors.New("broken on purpose")
	onCreate := func(_ context.Context, op string) error {
		if op == "CreateStore" {
			return broken
		}
		return nil
	}
	stores := func() int {
		found, err := client.FindStores(t.Context(), "wanted")
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}

	server.FailBefore(onCreate)
	if _, err := client.CreateStore(t.Context(), "wanted"); !fault.IsUnavailable(err) || stores() != 0 || server.Writes() != 0 {
		t.Errorf("failed before: %v, %d stores, %d writes; want unavailable, 0 and 0", err, stores(), server.Writes())
	}
	server.FailBefore(nil)
	server.FailAfter(onCreate)
	if _, err := client.CreateStore(t.Context(), "wanted"); !fault.IsUnavailable(err) || stores() != 1 || server.Writes() != 1 {
		t.Errorf("failed after: %v, %d stores, %d writes; want unavailable, 1 and 1", err, stores(), server.Writes())
	}
	server.FailAfter(nil)
	if _, err := client.CreateStore(t.Context(), "wanted"); err != nil || stores() != 2 {
		t.Errorf("mended: %v, %d stores; want no error and 2", err, stores())
	}
}

func TestDelayedCallEndsWithContext(t *testing.T) {
	server := LazyOpenFGA(t)
	client := dial(t, server)
	server.FailBefore(func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := client.CreateStore(ctx, "slow"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v; want %v", err, context.DeadlineExceeded)
	}
}
