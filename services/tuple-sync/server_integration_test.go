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
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
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

func TestTupleServiceCombinesDeclarationsAndOpenFGA(t *testing.T) {
	b := newTestEnv(t)
	r := b.serve()
	client := clientOf(r)
	testenv.Eventually(t, soon, func() error {
		if _, err := client.ListTuples(t.Context(), &tuplev1.ListTuplesRequest{Store: "demo"}); connect.CodeOf(err) != connect.CodeUnavailable {
			return fmt.Errorf("before the snapshot ListTuples answers %w, want Unavailable", err)
		}
		return nil
	})
	const owner, boss = "document:1#owner@user:boss", "document:1#viewer@user:boss"
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
		if connect.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("a tuple with an unknown condition: %v", err)
		}
		stranger.Condition = given[0].GetCondition()
		_, err = client.Check(t.Context(), &tuplev1.CheckRequest{Store: "demo", Key: stranger})
		if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "only contextual tuples can have one") {
			t.Errorf("a key with a condition: %v", err)
		}
		stranger.Condition = nil
		_, err = client.Check(t.Context(), &tuplev1.CheckRequest{Store: "demo", Key: key("ship:1#captain@user:1")})
		if connect.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), "ship") {
			t.Errorf("an unknown type: %v", err)
		}
		_, err = client.Check(t.Context(), &tuplev1.CheckRequest{Store: "dmo", Key: stranger})
		if connect.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), "did you mean demo?") {
			t.Errorf("an unknown Store: %v", err)
		}
	})
	t.Run("ExplainCheck", func(t *testing.T) {
		for text, want := range map[string]string{
			boss: "DECLARED Store/demo spec.tuples[1]", first: "DECLARED Store/demo spec.tuples[0] AuthorizationModel/one spec.tuples[0]", foreign: "UNMANAGED",
		} {
			got, err := client.ExplainCheck(t.Context(), &tuplev1.ExplainCheckRequest{Store: "demo", Key: key(text)})
			if err != nil || !got.GetAllowed() || got.GetTree().GetAnswer() != tuplev1.Decision_ANSWER_YES || !slices.Contains(originsOf(got.GetTree()), want) {
				t.Errorf("%s: got %v, %v, want %s", text, got, err, want)
			}
		}
		got, err := client.ExplainCheck(t.Context(), &tuplev1.ExplainCheckRequest{Store: "demo", Key: key("document:1#viewer@user:stranger")})
		if err != nil || got.GetAllowed() || got.GetTree().GetAnswer() != tuplev1.Decision_ANSWER_NO {
			t.Errorf("a stranger: %v, %v", got, err)
		}
	})
	t.Run("ListUsers", func(t *testing.T) {
		got, err := client.ListUsers(t.Context(), &tuplev1.ListUsersRequest{Store: "demo", UserType: "user", Relation: "viewer", Object: "document:1"})
		if err != nil || !slices.Equal(got.GetUsers(), []string{"user:1", "user:boss"}) || got.GetTruncated() {
			t.Errorf("got %v, %v", got, err)
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

// originsOf returns the origins of the tuples in a tree.
func originsOf(m *tuplev1.Decision) (all []string) {
	if m.GetTuple() != nil {
		text := strings.TrimPrefix(m.GetOrigin().String(), "ORIGIN_")
		for _, o := range m.GetTuple().GetOwners() {
			text += fmt.Sprintf(" %s/%s %s", o.GetKind(), o.GetName(), o.GetField())
		}
		all = append(all, text)
	}
	for _, child := range m.GetChildren() {
		all = append(all, originsOf(child)...)
	}
	return all
}

// OpenFGA ends a list at its limit without a mark.
func TestListsThatReachLimitOfOpenFGAAreMarked(t *testing.T) {
	const limit = 1000 // The default of OpenFGA and of tuple-sync.
	b := newTestEnv(t)
	client := clientOf(b.serve())
	b.store("demo")
	id := b.synced("demo", docs)
	b.StartReflector()
	b.await(stores, "demo", "Synced")
	var held []string
	for i := range limit + 1 {
		held = append(held, fmt.Sprintf("document:1#viewer@user:%d", i), fmt.Sprintf("document:x%d#viewer@user:reader", i))
	}
	b.write(id, held, nil)
	users, err := client.ListUsers(t.Context(), &tuplev1.ListUsersRequest{Store: "demo", UserType: "user", Relation: "viewer", Object: "document:1"})
	if err != nil || len(users.GetUsers()) != limit || !users.GetTruncated() {
		t.Errorf("got %d users, truncated %t, %v, want %d and a mark", len(users.GetUsers()), users.GetTruncated(), err, limit)
	}
	objects, err := client.ListObjects(t.Context(), &tuplev1.ListObjectsRequest{Store: "demo", User: "user:reader", Relation: "viewer", Type: "document"})
	if err != nil || len(objects.GetObjects()) != limit || !objects.GetTruncated() {
		t.Errorf("got %d objects, truncated %t, %v, want %d and a mark", len(objects.GetObjects()), objects.GetTruncated(), err, limit)
	}
}

// Each answer follows a change at once, without a wait in between.
func TestAnswersWithMinObjectIncludeIt(t *testing.T) {
	b := newTestEnv(t)
	client := clientOf(b.serve())
	b.store("demo", "document:1#viewer@user:0")
	b.synced("demo", docs)
	b.StartReflector()
	b.await(stores, "demo", "Synced")
	for i := 1; i <= 5; i++ {
		b.store("demo", fmt.Sprintf("document:1#viewer@user:%d", i))
		b.rule(stores, "demo", corev1alpha1.ModelSynced, b.modelOf("demo"))
		for user, want := range map[int]bool{i: true, i - 1: false} {
			asked := key(fmt.Sprintf("document:1#viewer@user:%d", user))
			got, err := client.Check(t.Context(), &tuplev1.CheckRequest{Store: "demo", Key: asked, After: "store/demo"})
			if err != nil || got.GetAllowed() != want {
				t.Errorf("round %d, user %d: got %v, %v, want %t", i, user, got, err, want)
			}
		}
	}
	_, err := client.Check(t.Context(), &tuplev1.CheckRequest{Store: "demo", Key: key("document:1#viewer@user:1"), After: "store/dmo"})
	if connect.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), "did you mean demo?") {
		t.Errorf("an unknown object: %v", err)
	}
}

// modelOf returns the part of a Store's status that names its model.
func (b *testEnv) modelOf(name string) map[string]any {
	b.T.Helper()
	of, err := b.get(stores, name)
	if err != nil {
		b.T.Fatal(err)
	}
	return map[string]any{"storeId": of.Status.StoreID, "authorizationModelId": of.Status.AuthorizationModelID}
}

func TestObjectTooLargeForRecordIsReported(t *testing.T) {
	b := newTestEnv(t)
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
	b.AwaitNoCalls()
	if n := len(b.holds(id)); n < 100 || n > 2700 {
		t.Errorf("%d tuples are written", n)
	}
	b.CheckNoWrites("a resync", func() { b.RequestResync(topology.TupleSync) })
}
