//go:build integration

package tuplesync_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func clientOf(r *testenv.RunningService) tuplev1connect.TupleServiceClient {
	transport := &http.Transport{DisableKeepAlives: true}
	return tuplev1connect.NewTupleServiceClient(&http.Client{Transport: transport}, r.URL)
}

func key(text string) *tuplev1.TupleKey {
	t := tuple(text)
	return &tuplev1.TupleKey{Object: t.Object, Relation: t.Relation, User: t.User}
}

func TestTupleServiceAnswersFromTheDeclarationsAndFromOpenFGA(t *testing.T) {
	b := newBed(t)
	r := b.serve()
	client := clientOf(r)
	testenv.Eventually(t, soon, func() error {
		if _, err := client.ListTuples(t.Context(), &tuplev1.ListTuplesRequest{Store: "demo"}); connect.CodeOf(err) != connect.CodeUnavailable {
			return fmt.Errorf("before the snapshot ListTuples answers %w, want Unavailable", err)
		}
		return nil
	})
	const owner = "document:1#owner@user:boss"
	b.store("demo", first, owner)
	id := b.synced("demo", docs)
	b.write(id, []string{foreign}, nil)
	b.module("one", "demo", first, third)
	b.StartReflector()
	b.await(stores, "demo", "Synced")
	b.await(models, "one", "Pending")

	t.Run("ListTuples", func(t *testing.T) {
		list, err := client.ListTuples(t.Context(), &tuplev1.ListTuplesRequest{Store: "demo", PageSize: 2})
		if err != nil || len(list.GetTuples()) != 2 || list.GetNextPageToken() == "" {
			t.Fatalf("got %v, %v", list, err)
		}
		rest, err := client.ListTuples(t.Context(), &tuplev1.ListTuplesRequest{Store: "demo", PageSize: 2, PageToken: list.GetNextPageToken()})
		if err != nil || len(rest.GetTuples()) != 1 || rest.GetTuples()[0].GetOwners()[0].GetState() != tuplev1.State_STATE_PENDING {
			t.Errorf("got %v, %v", rest, err)
		}
		if _, err := client.ListTuples(t.Context(), &tuplev1.ListTuplesRequest{}); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("without a Store: %v", err)
		}
	})
	t.Run("ExplainTuple", func(t *testing.T) {
		got, err := client.ExplainTuple(t.Context(), &tuplev1.ExplainTupleRequest{Store: "demo", Key: key(first)})
		if err != nil || !got.GetLive() || got.GetWrittenAt() == nil || len(got.GetTuple().GetOwners()) != 2 {
			t.Errorf("a tuple of two: %v, %v", got, err)
		}
		got, err = client.ExplainTuple(t.Context(), &tuplev1.ExplainTupleRequest{Store: "demo", Key: key(foreign)})
		if err != nil || !got.GetLive() || len(got.GetTuple().GetOwners()) != 0 {
			t.Errorf("a tuple of somebody else: %v, %v", got, err)
		}
		got, err = client.ExplainTuple(t.Context(), &tuplev1.ExplainTupleRequest{Store: "demo", Key: key(third)})
		if err != nil || got.GetLive() || len(got.GetTuple().GetOwners()) != 1 {
			t.Errorf("a pending tuple: %v, %v", got, err)
		}
	})
	t.Run("Check", func(t *testing.T) {
		const boss = "document:1#viewer@user:boss"
		got, err := client.Check(t.Context(), &tuplev1.CheckRequest{Store: "demo", Key: key(boss), HigherConsistency: true})
		if err != nil || !got.GetAllowed() || got.GetStoreId() != id || got.GetAuthorizationModelId() == "" {
			t.Errorf("the owner: %v, %v", got, err)
		}
		stranger := key("document:1#viewer@user:stranger")
		if got, err := client.Check(t.Context(), &tuplev1.CheckRequest{Store: "demo", Key: stranger}); err != nil || got.GetAllowed() {
			t.Errorf("a stranger: %v, %v", got, err)
		}
		given := []*tuplev1.TupleKey{key("document:1#owner@user:stranger")}
		if got, err := client.Check(t.Context(), &tuplev1.CheckRequest{Store: "demo", Key: stranger, ContextualTuples: given}); err != nil || !got.GetAllowed() {
			t.Errorf("a stranger with a tuple: %v, %v", got, err)
		}
		given[0].Condition = &tuplev1.Condition{Name: "nowhere"}
		_, err = client.Check(t.Context(), &tuplev1.CheckRequest{Store: "demo", Key: stranger, ContextualTuples: given})
		if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("a tuple with an unknown condition: %v", err)
		}
		stranger.Condition = given[0].GetCondition()
		_, err = client.Check(t.Context(), &tuplev1.CheckRequest{Store: "demo", Key: stranger})
		if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "only contextual tuples can have one") {
			t.Errorf("a key with a condition: %v", err)
		}
		_, err = client.Check(t.Context(), &tuplev1.CheckRequest{Store: "demo", Key: key("ship:1#captain@user:1")})
		if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "ship") {
			t.Errorf("an unknown type: %v", err)
		}
	})
	t.Run("ListObjects", func(t *testing.T) {
		got, err := client.ListObjects(t.Context(), &tuplev1.ListObjectsRequest{Store: "demo", Type: "document", Relation: "viewer", User: "user:1"})
		if err != nil || !slices.Equal(got.GetObjects(), []string{"document:1"}) {
			t.Errorf("got %v, %v", got, err)
		}
		given := []*tuplev1.TupleKey{key("document:7#owner@user:stranger")}
		got, err = client.ListObjects(t.Context(), &tuplev1.ListObjectsRequest{
			Store: "demo", Type: "document", Relation: "viewer", User: "user:stranger", ContextualTuples: given,
		})
		if err != nil || !slices.Equal(got.GetObjects(), []string{"document:7"}) {
			t.Errorf("with a tuple: got %v, %v", got, err)
		}
	})
	t.Run("Expand", func(t *testing.T) {
		got, err := client.Expand(t.Context(), &tuplev1.ExpandRequest{Store: "demo", Object: "document:1", Relation: "viewer"})
		if err != nil || !json.Valid([]byte(got.GetTreeJson())) || len(got.GetTuples()) != 1 || len(got.GetTuples()[0].GetOwners()) != 2 {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestAnObjectTooLargeForItsRecordSaysWhatToDo(t *testing.T) {
	b := newBed(t)
	var large []string
	for i := range 2800 {
		large = append(large, fmt.Sprintf("document:%0200d#viewer@user:%0200d", i, i))
	}
	b.store("demo", large...)
	id := b.synced("demo", docs)
	b.StartReflector()
	b.serve()
	message := b.await(stores, "demo", "Invalid")
	if !strings.Contains(message, "of 2800 tuples") || !strings.Contains(message, "move tuples to another AuthorizationModel") {
		t.Errorf("the message is %.2000q", message)
	}
	b.AwaitSettled()
	if n := len(b.holds(id)); n < 100 || n > 2700 {
		t.Errorf("%d tuples are written", n)
	}
	b.CheckNoWrites("a resync", func() { b.RequestResync(topology.TupleSync) })
}
