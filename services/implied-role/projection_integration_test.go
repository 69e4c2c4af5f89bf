//go:build integration

package impliedrole_test

import (
	"fmt"
	"slices"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestProjectionMakesOpenFGACheckImpliedRoles(t *testing.T) {
	b := newTestEnv(t)
	hand := b.OpenFGA.Client(t)
	b.StartReflector()
	project := func(c *impliedrole.Config) { c.ProjectStore, c.OpenFGA = "roles", b.OpenFGA.Config() }
	running := b.serveWith(project)
	b.do("admin>editor editor>viewer")

	// The store is created late, and no rule is lost.
	id, err := hand.CreateStore(t.Context(), "roles")
	if err != nil {
		t.Fatal(err)
	}
	writeModel(t, hand, id, "[user, role#assignee]")
	tuple := func(object, user string) *openfgav1.TupleKey {
		return &openfgav1.TupleKey{Object: object, Relation: "assignee", User: user}
	}
	others := []*openfgav1.TupleKey{tuple("role:team/admin", "user:ann"), tuple("role:team/x", "role:y#assignee")}
	adminEdits := tuple("role:team/editor", "role:team/admin#assignee")
	editorViews := tuple("role:team/viewer", "role:team/editor#assignee")
	adminViews := tuple("role:team/viewer", "role:team/admin#assignee")
	if err := hand.Write(t.Context(), id, "", others, nil); err != nil {
		t.Fatal(err)
	}
	awaitLinks := func(want ...*openfgav1.TupleKey) {
		t.Helper()
		awaitTuples(t, hand, id, append(want, others...)...)
	}
	expect := func(allowed bool) {
		t.Helper()
		answer, err := hand.Check(t.Context(), &openfgav1.CheckRequest{
			StoreId: id, TupleKey: &openfgav1.CheckRequestTupleKey{Object: "role:team/viewer", Relation: "assignee", User: "user:ann"},
		})
		if err != nil || answer.GetAllowed() != allowed {
			t.Errorf("ann, viewer: got %v, %v; want %t", answer, err, allowed)
		}
	}
	awaitLinks(adminEdits, editorViews)
	expect(true)

	b.do("-editor>viewer")
	awaitLinks(adminEdits)
	expect(false)

	t.Run("what was missed is made good by the next start", func(*testing.T) {
		running.Stop()
		b.do("-admin>editor admin>viewer")
		left := []*openfgav1.TupleKey{tuple("role:gone/viewer", "role:gone/admin#assignee")}
		if err := hand.Write(t.Context(), id, "", left, nil); err != nil {
			t.Fatal(err)
		}
		b.serveWith(project)
		awaitLinks(adminViews)
		expect(true)
	})
	t.Run("what was changed behind our back is mended by a resync", func(t *testing.T) {
		b.AwaitNoCalls()
		if err := hand.Write(t.Context(), id, "", nil, []*openfgav1.TupleKey{adminViews}); err != nil {
			t.Fatal(err)
		}
		b.RequestResync(topology.ImpliedRole) // The resync shortly after a start could also do it.
		awaitLinks(adminViews)
		expect(true)
	})
	t.Run("an outage of OpenFGA loses nothing", func(*testing.T) {
		b.OpenFGA.Stop()
		b.do("-admin>viewer")
		b.OpenFGA.Start(t)
		awaitLinks()
		expect(false)
	})
	t.Run("nothing is written twice", func(*testing.T) {
		b.AwaitNoCalls()
		b.CheckNoWrites("a resync", func() { b.RequestResync(topology.ImpliedRole) })
	})
}

func writeModel(t *testing.T, hand *fga.Client, store, assignees string) {
	t.Helper()
	model, err := transformer.TransformDSLToProto("model\n  schema 1.1\ntype user\ntype role\n  relations\n    define assignee: " + assignees + "\n")
	if err == nil {
		_, err = hand.WriteModel(t.Context(), store, model)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// awaitTuples waits until a store holds exactly these tuples. Their number alone can be right between two writes.
func awaitTuples(t *testing.T, hand *fga.Client, store string, want ...*openfgav1.TupleKey) {
	t.Helper()
	wanted := inOrder(want)
	testenv.Eventually(t, soon, func() error {
		var found []*openfgav1.TupleKey
		for tuple, err := range hand.ReadTuples(t.Context(), store) {
			if err != nil {
				return err
			}
			found = append(found, tuple.GetKey())
		}
		if got := inOrder(found); !slices.Equal(got, wanted) {
			return fmt.Errorf("tuples %v, want %v", got, wanted)
		}
		return nil
	})
}

// inOrder returns the tuples as sorted texts.
func inOrder(tuples []*openfgav1.TupleKey) []string {
	var said []string
	for _, t := range tuples {
		said = append(said, t.GetUser()+" "+t.GetRelation()+" "+t.GetObject())
	}
	slices.Sort(said)
	return said
}

func TestProjectionFailureDoesNotBlockRoleBinding(t *testing.T) {
	b := newTestEnv(t)
	hand := b.OpenFGA.Client(t)
	id, err := hand.CreateStore(t.Context(), "roles")
	if err != nil {
		t.Fatal(err)
	}
	b.StartReflector()
	b.serveWith(func(c *impliedrole.Config) { c.ProjectStore, c.OpenFGA = "roles", b.OpenFGA.Config() })
	b.do("a=admin{alice} admin>editor") // The service waits for a model.
	awaitGenerated := func(want int) {
		t.Helper()
		testenv.Eventually(t, soon, func() error {
			list, err := b.bindings().List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=implied-role"})
			if err == nil && len(list.Items) != want {
				err = fmt.Errorf("%d generated bindings, want %d", len(list.Items), want)
			}
			return err
		})
	}
	awaitGenerated(1)
	writeModel(t, hand, id, "[user]")
	b.do("editor>viewer")
	awaitGenerated(2)
	awaitTuples(t, hand, id)
	writeModel(t, hand, id, "[user, role#assignee]")
	b.RequestResync(topology.ImpliedRole)
	awaitTuples(t, hand, id,
		&openfgav1.TupleKey{Object: "role:team/editor", Relation: "assignee", User: "role:team/admin#assignee"},
		&openfgav1.TupleKey{Object: "role:team/viewer", Relation: "assignee", User: "role:team/editor#assignee"})
	dead, err := b.JS.Stream(t.Context(), topology.DeadLetters)
	if err != nil {
		t.Fatal(err)
	}
	if n := dead.CachedInfo().State.Msgs; n > 0 {
		t.Errorf("got %d dead letters", n)
	}
}
