//go:build integration

package impliedrole_test

import (
	"fmt"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestChecksInOpenFGASeeWhatRolesImply(t *testing.T) {
	b := newBed(t)
	hand := b.OpenFGA.Client(t)
	b.Reflector()
	project := func(c *impliedrole.Config) { c.ProjectStore, c.OpenFGA = "roles", b.OpenFGA.Config() }
	running := b.serveWith(project)
	b.do("admin>editor editor>viewer")

	// The store comes late: nothing is lost.
	id, err := hand.CreateStore(t.Context(), "roles")
	if err != nil {
		t.Fatal(err)
	}
	writeModel(t, hand, id, "[user, role#assignee]")
	tuple := func(object, user string) *openfgav1.TupleKey {
		return &openfgav1.TupleKey{Object: object, Relation: "assignee", User: user}
	}
	others := []*openfgav1.TupleKey{tuple("role:team/admin", "user:ann"), tuple("role:team/x", "role:y#assignee")}
	if err := hand.Write(t.Context(), id, "", others, nil); err != nil {
		t.Fatal(err)
	}
	awaitTuples := func(want int) {
		t.Helper()
		awaitTuples(t, hand, id, want+len(others))
	}
	expect := func(allowed bool) {
		t.Helper()
		answer, err := hand.Check(t.Context(), &openfgav1.CheckRequest{
			StoreId: id, TupleKey: &openfgav1.CheckRequestTupleKey{Object: "role:team/viewer", Relation: "assignee", User: "user:ann"},
		})
		if err != nil || answer.GetAllowed() != allowed {
			t.Errorf("ann has viewer: %v, %v; want %t", answer, err, allowed)
		}
	}
	awaitTuples(2)
	expect(true)

	b.do("-editor>viewer")
	awaitTuples(1)
	expect(false)

	t.Run("what was missed is made good by the next start", func(*testing.T) {
		running.Stop()
		b.do("-admin>editor admin>viewer")
		left := []*openfgav1.TupleKey{tuple("role:gone/viewer", "role:gone/admin#assignee")}
		if err := hand.Write(t.Context(), id, "", left, nil); err != nil {
			t.Fatal(err)
		}
		b.serveWith(project)
		awaitTuples(1)
		expect(true)
	})
	t.Run("what was changed behind our back is mended by a resync", func(t *testing.T) {
		b.Settled()
		if err := hand.Write(t.Context(), id, "", nil, []*openfgav1.TupleKey{tuple("role:team/viewer", "role:team/admin#assignee")}); err != nil {
			t.Fatal(err)
		}
		b.Resync(topology.ImpliedRole) // Or by the look some seconds after a start, if that comes just now.
		awaitTuples(1)
		expect(true)
	})
	t.Run("an outage of OpenFGA loses nothing", func(*testing.T) {
		b.OpenFGA.Stop()
		b.do("-admin>viewer")
		b.OpenFGA.Start(t)
		awaitTuples(0)
		expect(false)
	})
	t.Run("nothing is written twice", func(*testing.T) {
		b.Settled()
		b.Quiet("a resync", func() { b.Resync(topology.ImpliedRole) })
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

func awaitTuples(t *testing.T, hand *fga.Client, store string, want int) {
	t.Helper()
	testbed.Eventually(t, soon, func() error {
		found := 0
		for _, err := range hand.ReadTuples(t.Context(), store) {
			if err != nil {
				return err
			}
			found++
		}
		if found != want {
			return fmt.Errorf("%d tuples, want %d", found, want)
		}
		return nil
	})
}

func TestAModelThatCannotHoldRulesHoldsUpNoRoleBinding(t *testing.T) {
	b := newBed(t)
	hand := b.OpenFGA.Client(t)
	id, err := hand.CreateStore(t.Context(), "roles")
	if err != nil {
		t.Fatal(err)
	}
	b.Reflector()
	b.serveWith(func(c *impliedrole.Config) { c.ProjectStore, c.OpenFGA = "roles", b.OpenFGA.Config() })
	b.do("a=admin{alice} admin>editor") // There is no model yet: that is waited for.
	awaitGenerated := func(want int) {
		t.Helper()
		testbed.Eventually(t, soon, func() error {
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
	awaitTuples(t, hand, id, 0)
	writeModel(t, hand, id, "[user, role#assignee]")
	b.Resync(topology.ImpliedRole)
	awaitTuples(t, hand, id, 2)
	dead, err := b.JS.Stream(t.Context(), topology.DeadLetters)
	if err != nil {
		t.Fatal(err)
	}
	if n := dead.CachedInfo().State.Msgs; n > 0 {
		t.Errorf("there are %d dead letters", n)
	}
}
